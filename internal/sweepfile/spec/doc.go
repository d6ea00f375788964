// Package spec turns a sweep file into a berth.Spec, or reports all of its
// problems at once.
//
//	document/     text → tree with places (YAML and JSON)
//	decode.go     the way through: bytes → tree → fields → defaults → checks
//	walk.go       faults of any document: repeated keys, bad characters, huge numbers
//	reader.go     collects problems; object.go reads the members of one object, and asks "did you mean" of an unknown key
//	fields.go     one function per section of the file; fields_search.go the search space
//	defaults.go   values of absent keys
//	check*.go     rules that need more than one field
//	check_drawn.go  rules for assignments as the search completes them
//	warnings.go   allowed settings that are probably a mistake
//	capacity.go   limits of the machines here; policy.go limits of the administrator
//
// Every code is explained in docs/errors.md.
package spec
