// Package metrics finds metrics in what a job prints or writes, and keeps what counts for its
// trial. Reader reads a line: a record (record.go), or pairs of a name and a value by one grammar
// (pairs.go), or the row of a table. name.go says which name is the objective's, and missed.go
// which line nearly has it. Series chooses the source that counts, once, and holds the
// objective's value and the points to store.
package metrics
