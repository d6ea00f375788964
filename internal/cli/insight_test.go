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

	store.Exec(`UPDATE sweeps SET spec = jsonb_set(spec::jsonb, '{parameters}',
		'[{"name": "lr", "type": "float", "min": 0, "max": 0.4}, {"name": "opt", "type": "categorical", "values": ["sgd", "adam"]}]') WHERE id = $1`, sweep)
	store.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, value, origin, finished_at)
		SELECT md5('rising' || n)::uuid, $1, n, json_build_object('lr', n / 100.0, 'opt', CASE WHEN n % 3 = 0 THEN 'sgd' ELSE 'adam' END), $2, 'succeeded',
			0.9 - (n - 17) * (n - 17) / 1000.0 + CASE WHEN n % 3 = 0 THEN 0.15 ELSE 0 END, json_build_object('by', CASE WHEN n <= 10 THEN 'sobol' ELSE 'gp' END), $3::timestamptz + (n * 7 % 41) * interval '1 second'
		FROM generate_series(1, 40) n`, sweep, apitest.SmallShape, apitest.Start)
	store.Exec(`INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why)
		SELECT id, rung, sweep_id, 3 ^ rung, value - 0.1, number % 4 = 0, 'why' FROM trials, generate_series(0, 2) rung
		WHERE sweep_id = $1 AND (rung = 0 OR number % 4 > rung)`, sweep)

	require.Equal(t, `PARAMETER  TRIALS  SHARE  IMPORTANCE
lr         40      69 %   ###########################
opt        40      31 %   #############

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

Importance: how far values in the best 10 % of 40 trials differ from values in all.
`, succeed(t, serve(t, store), "sweep", "insight", "rising").stdout)
}

// With several objectives and constraints, tables and details have all results.
func TestSweepWithSeveralObjectives(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	sweep := store.AddSweep(2, "two", berth.SweepRunning)

	store.Exec(`UPDATE sweeps SET spec = jsonb_set(spec::jsonb, '{objective}', '[{"metric": "acc", "goal": "maximize"}, {"metric": "ms", "goal": "minimize"}]')
		|| '{"constraints": [{"metric": "ms", "max": 20}]}' WHERE id = $1`, sweep)
	store.Exec("INSERT INTO sweep_files (sweep_id, spec) SELECT id, spec FROM sweeps WHERE id = $1", sweep)
	store.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, value, results, message, started_at, finished_at)
		SELECT md5('two' || n)::uuid, $1, n, json_build_object('lr', n / 100.0), $2, 'succeeded', CASE WHEN ms <= 20 THEN acc END,
			json_build_object('acc', acc, 'ms', ms), CASE WHEN ms > 20 THEN 'its ms is more than 20' ELSE 'finished' END, $3::timestamptz, $3::timestamptz
		FROM (VALUES (1, 0.9, 12), (2, 0.8, 9), (3, 0.95, 30), (4, 0.7, 10)) v (n, acc, ms)`, sweep, apitest.SmallShape, apitest.Start)

	server := serve(t, store)
	require.Contains(t, succeed(t, server, "sweep", "insight", "two").stdout, `BEST TRADES  ACC  MS
trial 1      0.9  12
trial 2      0.8  9
`)

	details := succeed(t, server, "sweep", "get", "two").stdout
	require.Regexp(t, `objective +maximize acc, minimize ms\nconstraint +ms at most 20\nbest +trial 1: 0.9\n`, details)

	trials := succeed(t, server, "sweep", "trials", "two").stdout
	require.Regexp(t, `TRIAL +STATE +VALUE +ACC +MS `, trials)
	require.Regexp(t, `\n3 +succeeded +- +0.95 +30 .* its ms is more than 20\n`, trials)
	require.Regexp(t, `\n4 +succeeded +0.7 +0.7 +10 .*0.04\s*\n`, trials)

	require.Regexp(t, `value +-\nacc +0.95\nms +30\n`, succeed(t, server, "trial", "get", "two", "3").stdout)
	require.Regexp(t, `acc +0.9\nms +12\n`, succeed(t, server, "sweep", "best", "two").stdout)
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
