// Package export writes the trials and the metric points of a sweep as tables: CSV,
// JSON lines or Parquet. It is the home of parquet-go.
//
// A Writer keeps at most a row group in memory, however long the table is. What
// the columns are is decided by the sweep's spec alone, before the first row is
// read, so that a table can be sent while it is read. docs/export.md lists them.
package export
