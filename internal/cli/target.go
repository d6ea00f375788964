package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthml/berth/api/client"
)

// fetchTries is how often a download is tried that gets no further.
const fetchTries = 6

// target is the directory that files are downloaded to. No name of a file and
// no link in it leads outside it.
type target struct {
	dir  string
	root *os.Root
}

func openTarget(dir string) (*target, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: a person's own files
		return nil, exitf(ExitUsage, "making the directory %q: %w", dir, err)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, exitf(ExitUsage, "opening the directory %q: %w", dir, err)
	}

	return &target{dir: dir, root: root}, nil
}

func (t *target) close() { _ = t.root.Close() }

// fetch names a file to download.
type fetch struct {
	trial   string
	attempt int
	file    client.File
	seen    func(bytes int64) // called with the bytes present so far
}

// fetch downloads a file unless it exists with the right checksum. It writes to
// a temporary name, continues where an earlier download was cut, and renames.
func (t *target) fetch(ctx context.Context, to *remote, f fetch) (there bool, err error) {
	name := filepath.FromSlash(f.file.Path)
	if !filepath.IsLocal(name) {
		return false, exitf(ExitError, "the server names a file %q outside the directory; it is not downloaded", f.file.Path)
	}

	if t.has(name, f.file) {
		f.seen(f.file.Bytes)

		return true, nil
	}

	if err := t.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, t.failed("making the directory of", f, err)
	}

	part := filepath.Join(filepath.Dir(name), ".berth-"+f.file.Sha256[:16]+".part") // so that a file is gone on with whose content is the same
	if err := t.receive(ctx, to, f, part); err != nil {
		return false, err
	}

	if info, err := t.root.Lstat(name); err == nil && info.Mode().IsRegular() { // a file that is replaced keeps its mode
		if err := t.root.Chmod(part, info.Mode().Perm()); err != nil {
			return false, t.failed("changing the mode of", f, err)
		}
	}

	if err := t.root.Rename(part, name); err != nil {
		return false, t.failed("renaming", f, err)
	}

	return false, nil
}

func (t *target) failed(doing string, f fetch, err error) error {
	return exitf(ExitError, "%s %q in %q: %w", doing, f.file.Path, t.dir, err)
}

// has reports whether the file exists. A link does not count.
func (t *target) has(name string, f client.File) bool {
	info, err := t.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes {
		return false
	}

	file, err := t.root.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()

	sum := sha256.New()
	_, err = io.Copy(sum, file)

	return err == nil && hex.EncodeToString(sum.Sum(nil)) == f.Sha256
}

// receive writes the whole file to part, over as many connections as it takes,
// and holds it to its checksum.
func (t *target) receive(ctx context.Context, to *remote, f fetch, part string) error {
	if info, err := t.root.Lstat(part); err == nil && (!info.Mode().IsRegular() || info.Size() > f.file.Bytes) {
		_ = t.root.Remove(part) // opening it reports the problem
	}

	file, err := t.root.OpenFile(part, os.O_RDWR|os.O_CREATE, anyFile)
	if err != nil {
		return t.failed("writing", f, err)
	}
	defer func() { _ = file.Close() }()

	sum := sha256.New()

	at, err := io.Copy(sum, file)
	if err != nil {
		return t.failed("reading", f, err)
	}

	f.seen(at)

	var p patience

	for tries := 0; at < f.file.Bytes; {
		n, err := to.readFile(ctx, f, at, io.MultiWriter(file, sum))
		at += n

		if tries++; n > 0 {
			tries = 0

			p.reset()
		}

		if err == nil {
			continue
		}

		if !temporary(err) || tries >= fetchTries || ctx.Err() != nil {
			return err
		}

		select {
		case <-time.After(p.pause(err)):
		case <-ctx.Done():
			return unreachable(ctx.Err())
		}
	}

	if got := hex.EncodeToString(sum.Sum(nil)); at != f.file.Bytes || got != f.file.Sha256 {
		_ = t.root.Remove(part)

		return exitf(ExitError, "the file %q was received with the checksum %s and not %s; it was thrown away: try again, and if it stays so look at the store",
			f.file.Path, got, f.file.Sha256)
	}

	if err := file.Close(); err != nil {
		return t.failed("writing", f, err)
	}

	return nil
}

// readFile writes the file from offset on to w, and returns how much it wrote.
func (r *remote) readFile(ctx context.Context, f fetch, offset int64, w io.Writer) (int64, error) {
	response, err := r.streams.ReadFile(ctx, f.trial, f.file.Path, &client.ReadFileParams{Attempt: some(f.attempt)}, func(_ context.Context, request *http.Request) error {
		// Some proxies refuse %2F.
		request.URL.RawPath = strings.ReplaceAll(request.URL.EscapedPath(), "%2F", "/")

		if offset > 0 {
			request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
			request.Header.Set("If-Range", `"`+f.file.Sha256+`"`)
		}

		return nil
	})
	if err != nil {
		return 0, unreachable(err)
	}

	defer func() { _ = response.Body.Close() }()

	switch {
	case response.StatusCode >= http.StatusBadRequest:
		return 0, problemIn(response)
	case offset > 0 && response.StatusCode != http.StatusPartialContent:
		return 0, exitf(ExitError, "the server does not send %q from where it was cut (%s); remove %q", f.file.Path, response.Status, path.Dir(f.file.Path)+"/.berth-*.part")
	}

	var writing error

	n, err := io.Copy(writerFunc(func(data []byte) (int, error) {
		n, err := w.Write(data)
		f.seen(int64(n))

		writing = err

		return n, err
	}), io.LimitReader(response.Body, f.file.Bytes-offset))

	switch {
	case writing != nil:
		return n, exitf(ExitError, "writing what was received %q: %w", f.file.Path, plainError(writing))
	case err != nil:
		return n, unreachable(err)
	case n < f.file.Bytes-offset:
		return n, unreachable(io.ErrUnexpectedEOF)
	}

	return n, nil
}

// plainError is an error without the path, which stands beside it.
func plainError(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}

	return err
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(data []byte) (int, error) { return w(data) }
