package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/control/health"
)

// Health warns before the last admin's token ends: after it no admin could make another.
func TestHealth_WarnsBeforeTheLastAdminEnds(t *testing.T) {
	t.Parallel()

	const day = 24 * time.Hour

	for name, c := range map[string]struct {
		admins health.AdminTokens
		warn   bool
		what   string
	}{
		"not known":  {health.AdminTokens{}, false, "not known"},
		"never made": {health.AdminTokens{Known: true}, false, "no token was ever made"},
		"for ever":   {health.AdminTokens{Known: true, Made: 2, Valid: 1}, false, "a token of an admin is valid"},
		"for long":   {health.AdminTokens{Known: true, Made: 2, Valid: 1, End: 15 * day}, false, "a token of an admin is valid"},
		"for days":   {health.AdminTokens{Known: true, Made: 2, Valid: 2, End: 13*day + time.Hour}, true, "expires in 13 days"},
		"for hours":  {health.AdminTokens{Known: true, Made: 2, Valid: 1, End: 5*time.Hour + time.Minute}, true, "expires in 5 hours"},
		"ended":      {health.AdminTokens{Known: true, Made: 2}, true, "no token of an admin is valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := finding(health.State{Admins: c.admins}, "tokens")
			require.True(t, f.OK)
			require.Equal(t, c.warn, f.Warn)
			require.Contains(t, f.What, c.what)
			require.Equal(t, c.warn, f.Next != "")
		})
	}
}
