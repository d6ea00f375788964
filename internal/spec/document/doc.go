// Package document reads a JSON or YAML text into one tree that remembers
// where everything stood, so that every later problem can name its place.
//
// JSON is checked by encoding/json. YAML is read here, in one pass: the parser
// the project would otherwise use (goccy/go-yaml 1.19.2) took 660 ms for 1 MiB
// of ordinary YAML and exhausted 4.8 GB on 64 KiB of open brackets, which no
// recover can stop. The part of YAML 1.2 that is read:
//
//   - block and flow mappings and sequences, on one line or many
//   - plain, single-quoted and double-quoted scalars, also over several lines
//   - literal | and folded > scalars with indentation and chomping marks
//   - comments, one --- at the start, one ... at the end
//   - the core schema: null, true/false, decimal, 0x and 0o numbers, floats;
//     on, yes and 1e-4 are a text, a text and a float
//
// Refused with a message: anchors, aliases, tags, directives, complex keys
// (? …), several documents and tabs as indentation.
package document
