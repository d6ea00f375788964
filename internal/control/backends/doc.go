// Package backends connects to the database and to Temporal: their flags, TLS and keys
// (tls.go), and the patience of a start while they come up.
package backends
