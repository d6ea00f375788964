package spec

import _ "embed"

// Schema is the format as JSON Schema (draft 2020-12), for editors. It accepts
// what Decode accepts, and refuses what is wrong in form: keys, types, words and
// units. What depends on several members is left to Decode.
//
//go:embed schema.json
var Schema []byte
