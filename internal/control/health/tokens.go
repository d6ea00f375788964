package health

import (
	"fmt"
	"time"
)

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
func (h State) tokens() Finding {
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
