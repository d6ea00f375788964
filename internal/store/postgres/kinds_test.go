package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A worker keeps what a read-only or failing server does not take, and tries again.
func TestKindOfCode_OutagesAreUnavailable(t *testing.T) {
	t.Parallel()

	for _, code := range []string{"25006", "58030", "53100", "57P01", "08006", "40001"} {
		require.Equal(t, berth.KindUnavailable, kindOfCode(code), code)
	}

	require.Equal(t, berth.KindInternal, kindOfCode("42P01"))
}
