package runtrial

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// The page of the job's contract tells every variable and directory of a launch.
func TestJobContract(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("../../../docs/job-contract.md")
	require.NoError(t, err)

	page := string(data)
	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Attempt.Demand.DeviceBytes = 1 << 30 })
	r.writeCheckpoint(t, "of-an-earlier-attempt")

	l := r.launch(t)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(l.Environment)), slices.Collect(maps.Keys(l.Defaults))) {
		if !strings.HasPrefix(name, "TRIAL_PARAM_") {
			require.Contains(t, page, "`"+name+"`")
		}
	}

	require.NotEmpty(t, l.Mounts)

	for _, m := range l.Mounts {
		require.Contains(t, page, "`"+m.Target+"`")
	}

	for _, text := range []string{
		berth.BytesText(workBytes), "5,000 files", "`" + berth.CacheDir + "`", strconv.FormatInt(Bounds{}.orDefault().OutputLimit>>30, 10) + " GiB", "`HOME` | `" + l.Environment["HOME"] + "`",
	} {
		require.Contains(t, page, text)
	}
}
