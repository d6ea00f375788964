package berth_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Health warns before the last admin's token ends: after it no admin could make another.
func TestHealth_WarnsBeforeTheLastAdminEnds(t *testing.T) {
	t.Parallel()

	const day = 24 * time.Hour

	for name, c := range map[string]struct {
		admins berth.AdminTokens
		warn   bool
		what   string
	}{
		"not known":  {berth.AdminTokens{}, false, "not known"},
		"never made": {berth.AdminTokens{Known: true}, false, "no token was ever made"},
		"for ever":   {berth.AdminTokens{Known: true, Made: 2, Valid: 1}, false, "a token of an admin is valid"},
		"for long":   {berth.AdminTokens{Known: true, Made: 2, Valid: 1, End: 15 * day}, false, "a token of an admin is valid"},
		"for days":   {berth.AdminTokens{Known: true, Made: 2, Valid: 2, End: 13*day + time.Hour}, true, "expires in 13 days"},
		"for hours":  {berth.AdminTokens{Known: true, Made: 2, Valid: 1, End: 5*time.Hour + time.Minute}, true, "expires in 5 hours"},
		"ended":      {berth.AdminTokens{Known: true, Made: 2}, true, "no token of an admin is valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			all := berth.Health{Admins: c.admins}.Findings()
			f := all[slices.IndexFunc(all, func(f berth.Finding) bool { return f.Part == "tokens" })]
			require.True(t, f.OK)
			require.Equal(t, c.warn, f.Warn)
			require.Contains(t, f.What, c.what)
			require.Equal(t, c.warn, f.Next != "")
		})
	}
}
