package runtrial

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthml/berth"
)

// shimSource are the Python files that a trial finds in front of PYTHONPATH.
//
//go:embed shim/sitecustomize.py shim/berth_shim/*.py
var shimSource embed.FS

const (
	mountShim = "/trial/shim"
	// mountShimOut is where the shim writes, and nobody else: the metrics file is the
	// script's, which may open it with "w" or read it back, and many scripts want
	// /trial/out empty when they start.
	mountShimOut = "/trial/shim-out"
	shimRecords  = "records.jsonl"
)

// addShim has the attempt's Python start with the shim. Errors: unavailable.
func (r *run) addShim(l *berth.Launch) error {
	dir, err := r.installShim()
	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "writing the shim: %w", err)
	}

	l.Shim = &berth.Shim{Source: dir, Target: mountShim, RecordsDir: r.dirs.shim, Records: mountShimOut + "/" + shimRecords}

	return nil
}

// installShim writes the shim's files, unless they are there, and returns their
// directory. Its name is their hash: running containers keep the files that they
// started with, whatever version of Berth comes next.
func (e *Executor) installShim() (string, error) {
	e.shimMu.Lock()
	defer e.shimMu.Unlock()

	files, hash, err := shimFiles()
	if err != nil {
		return "", err
	}

	dir := filepath.Join(e.config.DataDir, "shim", hash)

	for name, data := range files {
		path := filepath.Join(dir, name)
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, data) { //nolint:gosec // G304: below our data directory
			continue
		}

		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: the job's user must read it
			return "", fmt.Errorf("making directory: %w", err)
		}

		if err := writeFile(path, data); err != nil {
			return "", err
		}
	}

	for _, path := range []string{dir, filepath.Join(dir, "berth_shim")} { // whatever the umask is
		if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // G302: the job's user must read it
			return "", fmt.Errorf("opening directory to the job: %w", err)
		}
	}

	return dir, nil
}

// shimFiles are the shim's files by their path in its directory, and the beginning of a
// SHA-256 of all.
func shimFiles() (files map[string][]byte, hash string, err error) {
	files = make(map[string][]byte)
	sum := sha256.New()

	err = fs.WalkDir(shimSource, "shim", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		name := strings.TrimPrefix(path, "shim/")
		files[name], err = shimSource.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(files[name]), files[name])

		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("reading embedded files: %w", err)
	}

	return files, hex.EncodeToString(sum.Sum(nil))[:16], nil
}
