package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImages_OfAMachineThatPullsNone(t *testing.T) {
	t.Parallel()

	images, pull := (&machine{pull: pullNever}).images(nil, "")
	require.Nil(t, pull)

	_, err := images.AskRegistry(t.Context(), "registry.example/team/a:1")
	require.ErrorContains(t, err, `image "registry.example/team/a:1" is on no machine, and they pull none (--pull never)`)
}
