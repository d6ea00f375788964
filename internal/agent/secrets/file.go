package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/berthml/berth"
)

const (
	// privatePrefix and publicPrefix begin a line of a key file (age-keygen(1)).
	privatePrefix = "AGE-SECRET-KEY-"
	publicPrefix  = "age1"
	// maxFileBytes is far more than any real number of keys.
	maxFileBytes = 1 << 20
	// openToOthers are the rights of a file that let others than its owner in.
	openToOthers = 0o077
)

// Read reads a key file: one key a line, private or public, with comments in
// age-keygen's format. The first key seals; every private one opens. Errors:
// invalid, with the command to type.
func Read(path string) (*Keys, error) {
	file, err := os.Open(path) //nolint:gosec // G304: the administrator names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, berth.Errorf(berth.KindInvalid, "there is no key file %q: restore it from its backup; or start without --secrets-key "+
			"(BERTH_SECRETS_KEY): no secret can be stored then, and trials that mount one wait, while others run. For a first key run `berth secret key %s`; "+
			"a new one opens nothing that is stored", path, path)
	}

	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "opening the key file: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "looking at the key file: %w", err)
	}

	if info.IsDir() {
		return nil, isDirectory(path)
	}

	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading the key file: %w", err)
	}

	keys, err := parse(path, string(text))
	if err != nil {
		return nil, err
	}

	if mode := info.Mode().Perm(); len(keys.private) > 0 && mode&openToOthers != 0 {
		return nil, berth.Errorf(berth.KindInvalid, "other users may read the key file %q (mode %04o): `chmod 600 %s`", path, mode, path)
	}

	return keys, nil
}

// isDirectory is the error for a directory in the place of a key file.
func isDirectory(path string) error {
	return berth.Errorf(berth.KindInvalid, "the key file %q is a directory, such as Docker makes when it mounts a file that is not there: "+
		"remove it by `rmdir`, then make the key with `berth secret key`, on the machine", path)
}

// parse reads the text of a key file. No error quotes it.
func parse(path, text string) (*Keys, error) {
	keys := &Keys{}
	number := 0

	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)

		var (
			public  *age.X25519Recipient
			private *age.X25519Identity
			err     error
		)

		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, privatePrefix):
			if private, err = age.ParseX25519Identity(line); err == nil {
				public = private.Recipient()
				keys.private = append(keys.private, private)
			}
		case strings.HasPrefix(line, publicPrefix):
			public, err = age.ParseX25519Recipient(line)
		default:
			err = errors.ErrUnsupported
		}

		if err != nil { // its text may be a part of the key
			return nil, berth.Errorf(berth.KindInvalid, "line %d of the key file %q is no key of age: each begins with %s1 (private) or %s (public); "+
				"`berth secret key FILE` makes one", number, path, privatePrefix, publicPrefix)
		}

		if keys.public == nil {
			keys.public = public
		}
	}

	if keys.public == nil {
		return nil, berth.Errorf(berth.KindInvalid, "the key file %q has no key: `berth secret key FILE` makes one", path)
	}

	return keys, nil
}

// Make writes a new key into a new file that only its owner may read, and returns
// its public part. Errors: conflict when the file exists; invalid for a directory.
func Make(path string) (public string, err error) {
	private, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}

	public = private.Recipient().String()
	text := fmt.Sprintf("# key for Berth's secrets, made %s; without it they cannot be opened\n# public key: %s\n%s\n",
		time.Now().UTC().Format(time.RFC3339), public, private)

	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // G304: the administrator names it
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return "", isDirectory(path)
		}

		return "", berth.Errorf(berth.KindConflict, "the file %q is there already: a key that is overwritten opens nothing any more; name another file", path)
	}

	if err != nil {
		return "", berth.Errorf(berth.KindInvalid, "making the key file: %w", err)
	}

	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", fmt.Errorf("writing the key file: %w", errors.Join(err, os.Remove(path)))
	}

	return public, nil
}
