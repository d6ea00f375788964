package runtrial

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// What the shim says of steps is in the attempt's usage, whatever else it says.
func TestShim_Steps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })

		digest := strings.Repeat("0f", 32)
		box, ended := r.begin(t)
		appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), epochs+`{"type":"phase","phase":"training","at":10.5}
{"type":"steps","count":3,"seconds":0.06}
{"type":"steps","count":-3,"seconds":6}
{"type":"steps","count":1,"seconds":0.1}
{"type":"first_fit","digest":"x","epochs":3,"seconds":1}
{"type":"first_fit","digest":"`+digest+`","epochs":3,"seconds":1.5}
{"type":"first_fit","digest":"`+digest+`","epochs":4,"seconds":2}
`)
		got := ends(t, box, ended, "", 0)
		require.EqualValues(t, 4, got.Usage.Steps)
		require.Equal(t, berth.Duration(40*time.Millisecond), got.Usage.StepTime)
		require.Zero(t, got.Usage.DevicePhases, "it has no GPU")
		require.Equal(t, &berth.FirstFit{Digest: digest, Epochs: 3, Seconds: 1.5}, got.FirstFit, "of the first program")
	})
}

// When the shim has told all that it tells, what came later belongs to no phase: so none
// is told apart.
func TestShim_MostPhases(t *testing.T) {
	t.Parallel()

	for records, told := range map[int]bool{mostPhases - 1: true, mostPhases: false} {
		s := &shimRead{metrics: metrics.NewSeries(nil, nil, "", berth.MetricsShim)}
		for i := range records {
			s.take([]byte([]string{`{"type":"phase","phase":"training","at":1}`, `{"type":"steps","count":2,"seconds":1}`}[i%2]))
		}

		require.Equal(t, told, len(s.report().phases) > 0, records)
		require.EqualValues(t, records/2*2, s.report().steps)
	}
}
