package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cgroup"
)

// seenFrom is a machine whose process 1 has this line in its cgroup file.
func seenFrom(t *testing.T, line string) cgroup.FS {
	t.Helper()

	proc := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "1"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "1", "cgroup"), []byte(line+"\n"), 0o600))

	return cgroup.FS{Proc: proc, Cgroup: t.TempDir()}
}

func TestDoctor_SaysWhichCgroupNamespaceIsNeeded(t *testing.T) {
	t.Parallel()

	require.True(t, checkCgroups(seenFrom(t, "0::/init.scope")).OK)

	f := checkCgroups(seenFrom(t, "0::/../../init.scope"))
	require.False(t, f.OK)
	require.Contains(t, f.Next, "cgroup: host")
}

// A worker that can measure nothing would probe one trial after another for ever.
func TestWorker_DoesNotStartWhereItCanMeasureNothing(t *testing.T) {
	t.Parallel()

	_, err := (&machine{instance: "main"}).runtime(t.Context(), seenFrom(t, "0::/../../init.scope"), berth.Host{}, connections{}, nil)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "cgroup: host")
}
