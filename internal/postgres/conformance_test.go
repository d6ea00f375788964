package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/ledgertest"
	"github.com/berthml/berth/internal/pgtest"
)

func TestLedger_Conformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) ledgertest.Bench {
		t.Helper()

		url := pgtest.URL(t)
		store := open(t, url)
		pool := openPool(t, url)

		sweep, trials := uuid.NewString(), 0
		_, _, err := store.CreateSweep(t.Context(), berth.NewSweep{ID: sweep, Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:x", CreatedBy: "me"})
		require.NoError(t, err)

		return ledgertest.Bench{
			Ledger: store,
			Trial: func(t *testing.T) berth.PlacementRequest {
				t.Helper()

				trials++

				trial, shape := uuid.NewString(), berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}
				_, _, err := store.Suggest(t.Context(), sweep, trials, 1, false, func(berth.Tried) ([]berth.NewTrial, bool, error) {
					return []berth.NewTrial{{ID: trial, Params: berth.Assignment{}, Shape: shape}}, false, nil
				})
				require.NoError(t, err)

				return berth.PlacementRequest{
					AttemptID: uuid.NewString(), SweepID: sweep, TrialID: trial, WorkflowID: "w", Number: 1,
					Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: shape.Key(),
				}
			},
			Pass: func(t *testing.T, d time.Duration) {
				t.Helper()

				_, err := pool.Exec(t.Context(), "UPDATE leases SET expires_at = expires_at - $1::interval, created_at = created_at - $1::interval", d)
				require.NoError(t, err)
				_, err = pool.Exec(t.Context(), "UPDATE hosts SET last_seen_at = last_seen_at - $1::interval", d)
				require.NoError(t, err)
				_, err = pool.Exec(t.Context(), "UPDATE devices SET lost_at = lost_at - $1::interval", d)
				require.NoError(t, err)
			},
		}
	})
}
