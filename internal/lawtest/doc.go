// Package lawtest holds the import law of docs/architecture.md as a test: a
// linter may be missing, `go test ./...` is not.
package lawtest
