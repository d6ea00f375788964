package runtrial

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/masking"
)

const (
	unreadBytes = 80 // of a line that a note shows
	// metricsFileBytes of the metrics file are read: a million points and more.
	metricsFileBytes = 256 << 20
)

// metricsFile is where a job writes its metrics. Nil = it is not read.
type metricsFile struct {
	*recordFile

	reader *metrics.Reader
	unread unreadLines
}

// newMetricsFile reads a job's metrics into a series.
func newMetricsFile(r *run, series *metrics.Series, objective string) *metricsFile {
	reader := metrics.NewReader("", objective)
	m := &metricsFile{reader: reader, unread: unreadLines{mask: r.mask}}

	m.recordFile = newRecordFile(r, r.dirs.out, metricsName, metricsFileBytes, func(line []byte) {
		points := reader.Read(berth.Stdout, string(line), time.Now().UTC())

		if reader.Restarted {
			reader.Restarted = false
			series.Forget(berth.MetricsFile, objective)
		}

		series.Add(berth.MetricsFile, points...)

		if len(points) == 0 {
			m.unread.add(line)
		}
	})
	m.anew = func() {
		m.rest = nil
		reader.Restart()
		series.Reset(berth.MetricsFile)
	}

	return m
}

// notes say what was left out.
func (m *metricsFile) notes() []string {
	if m == nil {
		return nil
	}

	notes := m.unread.notes()
	if m.cut {
		notes = append(notes, "its metrics file is larger than "+berth.BytesText(metricsFileBytes)+" and was read so far only")
	}

	return notes
}

// unreadLines counts the lines of a metrics file that hold nothing that can be read.
type unreadLines struct {
	mask  *masking.Mask
	lines int
	first string
}

// add counts a line that holds no metric, but not what may well be there: a record without
// metrics, and the lines of one that goes over several.
func (u *unreadLines) add(line []byte) {
	text := metrics.Shown(string(line))
	if json.Valid([]byte(text)) || partOfRecord.MatchString(text) {
		return
	}

	if u.lines++; u.lines == 1 {
		text = u.mask.Quote(metrics.Shown(u.mask.Quote(string(line)))) // a value may have what is not shown, or be in pieces between
		u.first = strings.ToValidUTF8(text[:min(len(text), unreadBytes)], "")
	}
}

// partOfRecord has no letters, or is a field, or begins one, in a record of several lines.
var partOfRecord = regexp.MustCompile(`^(?:[^\pL\d]*|["'].*["']\s*:.*)$`)

// notes say what could not be read.
func (u *unreadLines) notes() []string {
	switch u.lines {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("a line of its metrics file holds no metric that Berth can read: %q", u.first)}
	default:
		return []string{fmt.Sprintf("%d lines of its metrics file hold no metric that Berth can read, such as %q", u.lines, u.first)}
	}
}
