// Package frontend holds the web interface as `make build` built it, or, in a
// program that was built without Node, a page that says so.
package frontend

import (
	"embed"
	"io/fs"
)

// dist is always there, because its .gitkeep is committed; it is empty until
// npm has built the interface.
//
//go:embed all:missing all:dist
var tree embed.FS

// Files is the files to serve: index.html and its assets.
func Files() fs.FS {
	if Built() {
		return sub("dist")
	}

	return sub("missing")
}

// Built reports whether this program has the interface.
func Built() bool {
	return BuiltFor() != ""
}

// BuiltFor is the SHA-256, in hex, of the description of the API (openapi.yaml)
// for which the interface was built; empty = it was not built.
func BuiltFor() string {
	sum, err := fs.ReadFile(tree, "dist/.api")
	if err != nil {
		return ""
	}

	return string(sum)
}

func sub(dir string) fs.FS {
	files, err := fs.Sub(tree, dir)
	if err != nil { // only for a path that is not valid
		panic(err)
	}

	return files
}
