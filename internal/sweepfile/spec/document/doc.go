// Package document reads a JSON or YAML text into one tree that remembers
// where everything stood, so that every later problem can name its place.
//
// encoding/json checks JSON, and go.yaml.in/yaml reads YAML. Unquoted YAML
// scalars have the meaning of YAML 1.2's core schema: on and yes are texts,
// 1e-4 is a number, 010 is ten. Refused with a message: anchors, aliases, tags,
// keys that are no text, several documents, and more than MaxDepth levels or
// MaxNodes values.
//
// goccy/go-yaml 1.19.2 was no choice: it took 4.8 GB for 64 KiB of open
// brackets, which no recover can stop, and reads 1e-4 as a text.
package document
