package metrics

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// row reads the columns of a table whose header has the objective, with spaces, commas or
// bars between them: what fastai and pandas print.
func (r *Reader) row(line string) (found []sighting) {
	columns := r.columns
	r.columns = nil

	if columns == nil && !r.target.mayBeIn(line) {
		return nil
	}

	fields := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t,;|│┃", c) })

	switch {
	case len(fields) < 2:
		return nil
	case len(fields) == len(columns) && number.MatchString(fields[0]):
		r.columns = columns
	case !slices.ContainsFunc(fields, func(name string) bool { return !startsName(name) }) &&
		slices.ContainsFunc(fields, func(name string) bool { return r.rankOf(name) > 0 }):
		r.columns = fields

		return nil
	default:
		return nil
	}

	var step *int64

	for i, name := range columns {
		if counting[strings.ToLower(name)] {
			step, _ = whole(json.Number(fields[i]))
		} else if p, ok := NewPoint("-", fields[i], time.Time{}); ok {
			found = append(found, sighting{point: p, name: name})
		}
	}

	for i := range found {
		found[i].step = step
	}

	return found
}
