package berth

import "time"

// Secret describes a stored secret. Only the trials that mount it get its value.
type Secret struct {
	Name      string
	Key       string // public part of the key that it is sealed to, age1…
	Version   int    // 1, then one more each time it is stored
	CreatedAt time.Time
	CreatedBy string // name of a token
	UpdatedAt time.Time
	UpdatedBy string
}

// SealedSecret is a secret as it is stored: only the private part of Key opens
// it.
type SealedSecret struct {
	Name       string
	Key        string
	Ciphertext []byte
}

const (
	// MaxSecretBytes is the longest value of a secret: room for a key of any kind, and
	// no place for data.
	MaxSecretBytes = 64 << 10
	// MaxSecrets is how many secrets an installation has at most.
	MaxSecrets = 1000
	// MinMaskedBytes is the shortest value that is masked in logs. A shorter one is part
	// of too many other words and numbers.
	MinMaskedBytes = 4
)
