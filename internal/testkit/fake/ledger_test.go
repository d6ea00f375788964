package fake_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
	"github.com/berthml/berth/internal/testkit/ledgertest"
)

func TestLedger_Conformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(*testing.T) ledgertest.Bench {
		l := fake.NewLedger(nil)

		return ledgertest.Bench{
			Ledger: l,
			Trial: func(*testing.T) berth.PlacementRequest {
				trial := berth.Trial{ID: uuid.NewString(), SweepID: "sweep", Number: 1, ShapeKey: "shape"}
				l.AddTrial(fake.Trial{Trial: trial, ImageDigest: "sha256:x"})

				return berth.PlacementRequest{
					AttemptID: uuid.NewString(), SweepID: trial.SweepID, TrialID: trial.ID, WorkflowID: "w", Number: 1,
					Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: trial.ShapeKey,
				}
			},
			Pass: func(_ *testing.T, d time.Duration) { l.Pass(d) },
		}
	})
}
