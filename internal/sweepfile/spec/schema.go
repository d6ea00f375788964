package spec

import _ "embed"

// Schema is the format as JSON Schema (draft 2020-12), for editors. It accepts
// every valid document, and refuses errors of form: keys, types, words and
// units. Decode checks the rules for several members.
//
//go:embed schema.json
var Schema []byte
