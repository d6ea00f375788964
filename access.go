package berth

import (
	"fmt"
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

// TokenCount is how many API tokens there are. Rows are never deleted, so Made
// says whether access was ever given to anyone.
type TokenCount struct {
	Made  int // ever, expired and revoked ones included
	Valid int // now, by the database's clock
}

// AdminTokens says whether anyone may still make tokens.
type AdminTokens struct {
	Known bool          // a worker's database role may not ask
	Made  int           // tokens of any role, expired and revoked ones included
	Valid int           // of admins, now
	End   time.Duration // until the last of those expires; 0 = one never does
}

// adminsEnd is how long before the last token of an admin expires a person is told, as of
// a certificate.
const adminsEnd = 14 * 24 * time.Hour

// tokens is the finding about access: only an admin makes tokens, so the last one must not end unseen.
func (h Health) tokens() Finding {
	f := Finding{OK: true, Part: "tokens", What: "whether an admin's token is valid is not known"}

	switch a := h.Admins; {
	case !a.Known:
	case a.Made == 0:
		f.What = "no token was ever made"
	case a.Valid == 0:
		f.Warn, f.What = true, "no token of an admin is valid"
		f.Next = "make one on the server's machine: `berth token create NAME --role admin --postgres-url URL`"
	case 0 < a.End && a.End < adminsEnd:
		f.Warn, f.What = true, "the last valid token of an admin expires in "+spanText(a.End)
		f.Next = "make another before: `berth token create NAME --role admin`"
	default:
		f.What = "a token of an admin is valid"
	}

	return f
}

// spanText is a time in whole hours, or days.
func spanText(d time.Duration) string {
	if hours := int(d.Hours()); hours < 48 {
		return fmt.Sprintf("%d hours", hours)
	}

	return fmt.Sprintf("%d days", int(d.Hours())/24)
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
