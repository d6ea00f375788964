package export

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

type csvWriter struct {
	out   *csv.Writer
	cells []string
}

func newCSV(to io.Writer, columns []Column) (*csvWriter, error) {
	w := &csvWriter{out: csv.NewWriter(to), cells: make([]string, len(columns))}
	for i, c := range columns {
		w.cells[i] = guarded(c.Name)
	}

	return w, w.out.Write(w.cells)
}

func (w *csvWriter) Write(row Row) error {
	for i, cell := range row {
		w.cells[i] = csvCell(cell)
	}

	return w.out.Write(w.cells)
}

func (w *csvWriter) Flush() error {
	w.out.Flush()

	return w.out.Error()
}

func (w *csvWriter) Close() error { return w.Flush() }

func csvCell(cell any) string {
	switch v := cell.(type) {
	case string:
		return guarded(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		return ""
	}
}

// guarded keeps spreadsheets from taking a text for a formula (OWASP, CSV injection).
// Numbers, also -infinity, need no guard.
func guarded(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}

	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}

	return "'" + text
}

// floatText is the shortest text that reads back as the same number, and as one
// with a fraction: 1.0, 1e-05, NaN, inf.
func floatText(v float64) string {
	if math.IsInf(v, 0) {
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+")
	}

	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eN") {
		text += ".0"
	}

	return text
}
