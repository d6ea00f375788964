// Package spec turns a sweep file into a berth.Spec, or says everything that
// is wrong with it at once.
//
//	document/     text → tree with places (YAML and JSON)
//	decode.go     the way through: bytes → tree → fields → defaults → checks
//	walk.go       what no document may hold: repeated keys, bad characters, huge numbers
//	reader.go     collects problems; object.go reads the members of one object
//	fields.go     one function per section of the file; parameters.go the search space
//	defaults.go   what is meant when nothing is written
//	check*.go     rules that need more than one field
//	check_drawn.go  what is only known of assignments as the search completes them
//	warnings.go   what is allowed but probably not meant
//	capacity.go   what no machine here can hold; policy.go what the administrator refuses
//
// Every code is explained in docs/errors.md.
package spec
