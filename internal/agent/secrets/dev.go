package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DevFile is the key of `berth dev`, in its data directory. A worker with the same
// directory takes it, too.
const DevFile = "secrets.key"

// Beside is the key of the `berth dev` with the same data directory; empty = none.
func Beside(dataDir string) string {
	path := filepath.Join(dataDir, DevFile)
	if _, err := os.Stat(path); err != nil {
		return ""
	}

	return path
}

// Own is the key file of `berth dev`, made when it is missing.
func Own(dataDir string) (string, error) {
	path := filepath.Join(dataDir, DevFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}

	_, err := Make(path)

	return path, err
}
