// Package web serves a built web interface: one page for every path that a
// person may type, and its assets.
package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"
)

const (
	page      = "index.html"
	immutable = "public, max-age=31536000, immutable" // assets have their hash in their name
)

// file is one file as it is sent.
type file struct {
	data []byte
	etag string // the SHA-256 of data; weak, as the answer may be compressed
}

// Site is a web interface, read once. Make one with New.
type Site struct {
	files map[string]file
}

// New reads a tree that has index.html. Base is the path under which browsers see
// it, such as /berth/ behind a proxy that strips that; empty is /.
func New(tree fs.FS, base string) (*Site, error) {
	site := &Site{files: make(map[string]file)}

	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}

		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}

		if name == page {
			if data, err = withBase(data, base); err != nil {
				return err
			}
		}

		sum := sha256.Sum256(data)
		site.files[name] = file{data: data, etag: `W/"` + hex.EncodeToString(sum[:]) + `"`}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the web interface: %w", err)
	}

	if _, ok := site.files[page]; !ok {
		return nil, fmt.Errorf("reading the web interface: it has no %s", page)
	}

	return site, nil
}

var (
	relative = regexp.MustCompile(`(src|href)="\./`)
	config   = regexp.MustCompile(`(<script id="berth-config" type="application/json">)[^<]*(</script>)`)
)

// withBase makes the page's addresses absolute, because the same page is served
// for paths of any depth, and tells its scripts where they are. It is data and
// no script, so that the content security policy needs no exception.
func withBase(data []byte, base string) ([]byte, error) {
	base = CleanBase(base)

	told, err := json.Marshal(map[string]string{"base": base}) // escapes <, > and &
	if err != nil {
		return nil, err
	}

	data = relative.ReplaceAll(data, []byte(`$1="`+strings.ReplaceAll(base, "$", "$$")))

	return config.ReplaceAll(data, []byte("${1}"+strings.ReplaceAll(string(told), "$", "$$")+"${2}")), nil
}

// CleanBase is a base path with a slash at both ends.
func CleanBase(base string) string {
	clean := path.Clean("/" + base)
	if clean == "/" {
		return clean
	}

	return clean + "/"
}

// Answer is what Serve did.
type Answer int

// The answers. Only with Served something was written.
const (
	Served Answer = iota
	Missing
	NotAcceptable // only a page is there, and the caller does not want one
)

// Serve sends a file that exists, or the page for any other path. A missing asset
// is never the page: a browser would take it for a script.
func (s *Site) Serve(w http.ResponseWriter, r *http.Request) Answer {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	asset := strings.HasPrefix(name, "assets/")

	found, ok := s.files[name]

	switch {
	case ok:
	case asset:
		return Missing
	case !acceptsPage(r.Header.Get("Accept")):
		return NotAcceptable
	default:
		name, found = page, s.files[page]
	}

	header := w.Header()
	if asset {
		header.Set("Cache-Control", immutable)
	} else {
		header.Set("Cache-Control", "no-cache")
	}

	header.Set("ETag", found.etag)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(found.data))

	return Served
}

func acceptsPage(accept string) bool {
	return accept == "" || strings.Contains(accept, "text/html") || strings.Contains(accept, "*/*")
}
