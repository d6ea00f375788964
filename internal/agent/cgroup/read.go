package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// readKeys reads a file of "key value" lines and returns the values of keys, in
// their order; 0 for a missing one.
func readKeys(path string, keys ...string) ([]int64, error) {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the kernel's
	if err != nil {
		return nil, err
	}

	values := make([]int64, len(keys))

	for line := range bytes.Lines(data) {
		name, rest, found := bytes.Cut(line, []byte(" "))
		if !found {
			continue
		}

		for i, key := range keys {
			if string(name) != key {
				continue
			}

			values[i], err = strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q of %q: %w", key, path, err)
			}
		}
	}

	return values, nil
}

// readInt reads a file that holds one number; "max" is 0.
func readInt(path string) (int64, error) {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the kernel's
	if err != nil {
		return 0, err
	}

	text := string(bytes.TrimSpace(data))
	if text == "max" {
		return 0, nil
	}

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %q: %w", path, err)
	}

	return n, nil
}

// readOptional is readInt of a file that not every kernel has; 0 without.
func readOptional(path string) (int64, error) {
	n, err := readInt(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}

	return n, err
}
