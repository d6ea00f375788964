package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A slip of a unit must not delete results: such a limit is refused, with the
// text to write instead.
func TestRetention_RefusesSlips(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		flag, text string
		want       int64  // bytes or nanoseconds
		says       string // of the refusal
	}{
		{"keep-outputs-size", "200", 0, "needs a unit"},
		{"keep-outputs-size", "200k", 0, "at least 1,024 MiB"},
		{"keep-outputs-size", "1023MiB", 0, "at least 1,024 MiB"},
		{"keep-outputs-size", "1GiB", 1 << 30, ""},
		{"keep-outputs-size", "200g", 200 << 30, ""},
		{"keep-outputs-size", "0", 0, "needs a unit"},
		{"keep-outputs-size", "many", 0, "is no size"},
		{"keep-sweeps", "3m", 0, "is 3m0s"},
		{"keep-sweeps", "59m", 0, "write days"},
		{"keep-sweeps", "1s", 0, "write days"},
		{"keep-sweeps", "90", 0, "is no time"},
		{"keep-sweeps", "1h", int64(time.Hour), ""},
		{"keep-sweeps", "90d", int64(90 * 24 * time.Hour), ""},
		{"keep-sweeps", "0", 0, ""},
		{"keep-outputs", "5m", 0, "write days"},
		{"keep-outputs", "90d", int64(90 * 24 * time.Hour), ""},
		{"keep-sweeps", "36500d", int64(36500 * 24 * time.Hour), ""},
		{"keep-sweeps", "36501d", 0, "is no time"},
		{"keep-sweeps", "213505d", 0, "is no time"},
		{"keep-sweeps", "-213504d", 0, "is no time"},
	} {
		var (
			s serving
			m machine
		)

		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.bind(flags)
		m.bind(flags)

		err := flags.Lookup(tt.flag).Value.Set(tt.text)
		if tt.says != "" {
			require.ErrorContains(t, err, tt.says, "--%s %s", tt.flag, tt.text)
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))

			continue
		}

		require.NoError(t, err, "--%s %s", tt.flag, tt.text)
		set, known := map[string]int64{
			"keep-outputs-size": m.keepOutputs, "keep-sweeps": int64(s.keep.Sweeps), "keep-outputs": int64(s.keep.Outputs),
		}[tt.flag]
		require.True(t, known, tt.flag)
		require.Equal(t, tt.want, set, "--%s %s", tt.flag, tt.text)
	}
}
