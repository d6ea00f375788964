package export

import (
	"io"

	"github.com/berthml/berth"
)

// Format is how a table is written.
type Format string

// The formats.
const (
	CSV     Format = "csv"     // RFC 4180 with a header; no value is an empty cell
	JSONL   Format = "jsonl"   // an object a line with all columns; no value is null
	Parquet Format = "parquet" // typed columns in row groups of rowGroup rows, compressed by Snappy
)

// MediaType is the format's type on the network.
func (f Format) MediaType() string {
	switch f {
	case JSONL:
		return "application/jsonl"
	case Parquet:
		return "application/vnd.apache.parquet"
	default:
		return "text/csv; charset=utf-8"
	}
}

// Writer writes a table, row by row.
type Writer interface {
	// Write takes a row with a cell for each column.
	Write(row Row) error
	// Flush sends the buffered rows, so that a slow table shows progress.
	Flush() error
	// Close ends the table. Without it the table is not whole.
	Close() error
}

// NewWriter begins a table. Errors: invalid for a format that is not known.
func NewWriter(f Format, to io.Writer, columns []Column) (Writer, error) {
	switch f {
	case CSV:
		return newCSV(to, columns)
	case JSONL:
		return newJSONL(to, columns), nil
	case Parquet:
		return newParquet(to, columns), nil
	default:
		return nil, berth.Errorf(berth.KindInvalid, "there is no format %q; write csv, jsonl or parquet", f)
	}
}
