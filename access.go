package berth

import (
	"time"
)

// Token is an API token as it is stored: never the token itself.
type Token struct {
	ID        string
	Name      string
	Prefix    string // its first characters, so that a person can tell tokens apart
	Role      string // viewer, operator or admin
	CreatedAt time.Time
	ExpiresAt *time.Time
	RevokedAt *time.Time
	Valid     bool // neither revoked nor expired, by the database's clock
}

// TokenCount is how many API tokens exist. Rows are never deleted, so Made = 0
// means that no token was ever made.
type TokenCount struct {
	Made  int // ever, expired and revoked ones included
	Valid int // now, by the database's clock
}

// Session is a browser that logged in with a token, whose name and role it has.
type Session struct {
	Token     Token     // only its id, name and role
	ExpiresAt time.Time // not after the token's
}

// AuditEntry says who did what, and how it went.
type AuditEntry struct {
	Actor, Action, Object, IP, Result string
}

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
