package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

type jsonlWriter struct {
	out  *bufio.Writer
	keys [][]byte // such as "number":
	line bytes.Buffer
}

func newJSONL(to io.Writer, columns []Column) *jsonlWriter {
	w := &jsonlWriter{out: bufio.NewWriter(to), keys: make([][]byte, len(columns))}
	for i, c := range columns {
		w.keys[i] = append(appendText(nil, c.Name), ':')
	}

	return w
}

func (w *jsonlWriter) Write(row Row) error {
	line := append(w.line.AvailableBuffer(), '{')

	for i, cell := range row {
		if i > 0 {
			line = append(line, ',')
		}

		line = appendJSON(append(line, w.keys[i]...), cell)
	}

	line = append(line, "}\n"...)
	_, err := w.out.Write(line)
	w.line = *bytes.NewBuffer(line[:0])

	return err
}

func (w *jsonlWriter) Flush() error { return w.out.Flush() }

func (w *jsonlWriter) Close() error { return w.out.Flush() }

func appendJSON(line []byte, cell any) []byte {
	switch v := cell.(type) {
	case string:
		return appendText(line, v)
	case int64:
		return strconv.AppendInt(line, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(line, "null"...)
		}

		return append(line, floatText(v)...)
	case bool:
		return strconv.AppendBool(line, v)
	case time.Time:
		return fmt.Appendf(line, "%q", v.UTC().Format(time.RFC3339Nano))
	default:
		return append(line, "null"...)
	}
}

func appendText(line []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // no text fails
		return append(line, "null"...)
	}

	return append(line, quoted...)
}
