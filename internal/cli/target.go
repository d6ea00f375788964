package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth/api/client"
)

const anyFile = 0o666 // less the umask

// fetchTries is how often the download of a file is tried.
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
}

// fetch downloads a file unless it exists with the right checksum. It writes to
// a temporary name, from the beginning after a cut, and renames.
func (t *target) fetch(ctx context.Context, to *remote, f fetch) (there bool, err error) {
	name := filepath.FromSlash(f.file.Path)
	if !filepath.IsLocal(name) {
		return false, exitf(ExitError, "the server names a file %q outside the directory; it is not downloaded", f.file.Path)
	}

	if t.has(name, f.file) {
		return true, nil
	}

	if err := t.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, t.failed("making the directory of", f, err)
	}

	part := filepath.Join(filepath.Dir(name), ".berth-"+f.file.Sha256[:16]+".part")
	if _, err := patiently(ctx, fetchTries, func(error) {}, func() (struct{}, error) { return struct{}{}, t.receive(ctx, to, f, part) }); err != nil {
		_ = t.root.Remove(part) // the first error counts

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

// receive writes the whole file to part, and holds it to its checksum.
func (t *target) receive(ctx context.Context, to *remote, f fetch, part string) error {
	file, err := t.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, anyFile)
	if err != nil {
		return t.failed("writing", f, err)
	}
	defer func() { _ = file.Close() }()

	sum := sha256.New()

	response, err := to.streams.ReadFile(ctx, f.trial, f.file.Path, &client.ReadFileParams{Attempt: some(f.attempt)}, func(_ context.Context, request *http.Request) error {
		request.URL.RawPath = strings.ReplaceAll(request.URL.EscapedPath(), "%2F", "/") // some proxies refuse %2F

		return nil
	})
	if err := receive(response, err, io.MultiWriter(file, sum)); err != nil {
		return err
	}

	if got := hex.EncodeToString(sum.Sum(nil)); got != f.file.Sha256 {
		return exitf(ExitError, "the file %q was received with the checksum %s and not %s; it was thrown away: try again, and if it stays so look at the store",
			f.file.Path, got, f.file.Sha256)
	}

	if err := file.Close(); err != nil {
		return t.failed("writing", f, err)
	}

	return nil
}
