//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// preview asks until a machine has resolved the image in time: without its
// digest no shape is known.
func (s *stack) preview(file string) client.Preview {
	s.t.Helper()

	var response *client.PreviewSweepResponse

	require.Eventually(s.t, func() bool {
		var err error

		response, err = s.api.PreviewSweepWithBodyWithResponse(s.t.Context(), "application/yaml", strings.NewReader(file))
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusOK, response.StatusCode(), string(response.Body))

		return response.JSON200.ImageDigest != ""
	}, time.Minute, tick)

	return *response.JSON200
}

func TestPreview_SaysWhatThenHappens(t *testing.T) {
	t.Parallel()

	s := start(t, "--memory", "4GiB", "--cpus", "3")
	file := `
name: two shapes
image: berth-test/busy:1
command: [/busy, train, "1500", "{{n}}", "{{mib}}"]
parameters: [{name: n, values: [1, 2, 3, 4, 5, 6]}, {name: mib, values: [10, 20], memory: true}]
search: {algorithm: grid}
objective: {metric: val}
metrics: {source: stdout}
resources: {cpus: 1}
`
	before := s.preview(file)
	require.Equal(t, 12, before.Trials)
	require.Len(t, before.Shapes, 2)
	require.Equal(t, 2, before.ProbesNeeded)
	require.Equal(t, 3, before.AtOnce, "three cores, one each; memory holds four unmeasured shapes")
	require.Equal(t, 4, before.Waves)
	require.Nil(t, before.Duration, "nobody knows how long an unmeasured shape takes")

	id := s.submit(file)
	sweep := s.until(id, 2*time.Minute, ended)
	require.Equal(t, before.Trials, sweep.Counts.Succeeded)

	shapes, probes := map[string]bool{}, 0

	for _, a := range s.attempts(id) {
		shapes[a.ShapeKey] = true

		if a.Purpose == "probe" {
			probes++
		}
	}

	require.Len(t, shapes, len(before.Shapes))
	require.Equal(t, before.ProbesNeeded, probes)
	require.LessOrEqual(t, s.most(id), before.AtOnce)

	// The next preview shows the measured values, and they hold.
	after := s.preview(file)
	require.Zero(t, after.ProbesNeeded)
	require.Equal(t, 2, after.ProbesCached)
	require.NotNil(t, after.Duration)

	started := time.Now()
	again := s.submit(file)
	s.until(again, 2*time.Minute, ended)
	require.GreaterOrEqual(t, time.Since(started).Seconds(), after.Duration.MinSeconds*0.5, "what was measured on a busy machine took longer")
	require.LessOrEqual(t, s.most(again), after.AtOnce)

	for _, a := range s.attempts(again) {
		require.Equal(t, "run", a.Purpose)
	}
}
