package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"filippo.io/age"

	"github.com/berthml/berth"
)

// Keys are the contents of a key file.
type Keys struct {
	public  *age.X25519Recipient  // seals
	private []*age.X25519Identity // open; empty where the file has public keys only
}

// Public is the public part of the key that seals.
func (k *Keys) Public() string { return k.public.String() }

// Opens are the public parts of the keys that open, sorted; none of nil.
func (k *Keys) Opens() []string {
	if k == nil {
		return nil
	}

	names := make([]string, len(k.private))
	for i, private := range k.private {
		names[i] = private.Recipient().String()
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// Seal encrypts a value under its name: it opens under no other.
func (k *Keys) Seal(name string, value []byte) (berth.SealedSecret, error) {
	var sealed bytes.Buffer

	w, err := age.Encrypt(&sealed, k.public)
	if err != nil {
		return berth.SealedSecret{}, fmt.Errorf("sealing secret %q: %w", name, err)
	}

	_, err = w.Write(slices.Concat(heading(name), value))
	if err = errors.Join(err, w.Close()); err != nil {
		return berth.SealedSecret{}, fmt.Errorf("sealing secret %q: %w", name, err)
	}

	return berth.SealedSecret{Name: name, Key: k.Public(), Ciphertext: sealed.Bytes()}, nil
}

// Open decrypts a value. Errors: unavailable when none of the keys opens it, but
// another machine's may; invalid for a value in another format.
func (k *Keys) Open(sealed berth.SealedSecret) ([]byte, error) {
	if k == nil || len(k.private) == 0 {
		return nil, berth.Errorf(berth.KindUnavailable, "secret %q: this worker has no private key; start it with --secrets-key FILE that holds the one of %s",
			sealed.Name, sealed.Key)
	}

	if !slices.Contains(k.Opens(), sealed.Key) {
		return nil, berth.Errorf(berth.KindUnavailable, "secret %q is sealed to %s, whose private part is not in the key file of this worker", sealed.Name, sealed.Key)
	}

	identities := make([]age.Identity, len(k.private))
	for i, private := range k.private {
		identities[i] = private
	}

	r, err := age.Decrypt(bytes.NewReader(sealed.Ciphertext), identities...)
	if err != nil {
		return nil, damaged(sealed.Name)
	}

	text, err := io.ReadAll(r)
	if err != nil {
		return nil, damaged(sealed.Name)
	}

	value, found := bytes.CutPrefix(text, heading(sealed.Name))
	if !found {
		return nil, damaged(sealed.Name)
	}

	return value, nil
}

// heading is sealed in front of a value, so that a writer to the database
// cannot swap a trial's secrets.
func heading(name string) []byte { return []byte("berth secret 1\n" + name + "\n") }

func damaged(name string) error {
	return berth.Errorf(berth.KindInvalid, "secret %q is damaged, or was stored under another name; store it again with `berth secret set %s`", name, name)
}
