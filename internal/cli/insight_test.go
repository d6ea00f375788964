package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestSweepInsight(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	sweep := store.AddSweep(2, "rising", berth.SweepRunning)

	store.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, value, origin, finished_at)
		SELECT md5('rising' || n)::uuid, $1, n, json_build_object('lr', n / 100.0, 'opt', CASE WHEN n % 3 = 0 THEN 'sgd' ELSE 'adam' END), $2, 'succeeded',
			0.9 - (n - 17) * (n - 17) / 1000.0 + CASE WHEN n % 3 = 0 THEN 0.15 ELSE 0 END, json_build_object('by', CASE WHEN n <= 10 THEN 'sobol' ELSE 'gp' END), $3::timestamptz + (n * 7 % 41) * interval '1 second'
		FROM generate_series(1, 40) n`, sweep, apitest.SmallShape, apitest.Start)
	store.Exec(`INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why)
		SELECT id, rung, sweep_id, 3 ^ rung, value - 0.1, number % 4 = 0, 'why' FROM trials, generate_series(0, 2) rung
		WHERE sweep_id = $1 AND (rung = 0 OR number % 4 > rung)`, sweep)

	require.Equal(t, `PARAMETER  TRIALS  SHARE  IMPORTANCE
opt        40      77 %   ###############################
lr         40      23 %   #########

BEST SO FAR  TRIAL  ENDED
0.929        6      119 s ago
1.025        12     118 s ago
1.049        18     117 s ago

JUDGED AT STEP  TRIALS  STOPPED  BEST   BEST OF THE STOPPED
1               40      10       0.949  0.925
3               20      0        0.949  -
9               10      0        0.946  -

VALUES CHOSEN BY  TRIALS
gp                30
sobol             10

Importance: how far values in the best 25 % of 40 trials differ from values in all.
`, succeed(t, serve(t, store), "sweep", "insight", "rising").stdout)
}

func TestSweepInsight_OfALargeSweep(t *testing.T) {
	t.Parallel()

	var out strings.Builder

	o := options{output: formatTable}
	require.NoError(t, o.printInsight(&out, client.SweepInsight{
		FromTrial: 4, Trials: 10_002, Rungs: []client.InsightRung{{Step: 3, LastStep: 5}},
		Importance: []client.InsightImportance{{Parameter: "lr", Trials: 7}},
	}))
	require.Contains(t, out.String(), "\nlr         7       -      too few trials\n")
	require.Contains(t, out.String(), "\n3-5  ")
	require.Contains(t, out.String(), "\nAll figures are of the newest 10,002 trials, from trial 4 on.\n")
}
