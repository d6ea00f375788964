// Package export writes the trials and the metric points of a sweep as tables: CSV,
// JSON lines or Parquet. Only this package uses parquet-go.
//
// A Writer keeps at most a row group in memory, for a table of any length. The
// sweep's spec alone decides the columns, before the first row is read, so that
// a table can be sent while it is read. docs/export.md lists them.
package export
