// Package metrics finds metrics in what a job prints or writes, and keeps what of them counts
// for its trial. Reader reads a line by one grammar: a record (record.go), a name (name.go) and
// a number (pairs.go), or the row of a table (table.go); name.go also says which name is the
// objective's, and missed.go which line nearly has it. Series chooses the source that counts,
// once, and holds the objective's value and the points to store.
package metrics
