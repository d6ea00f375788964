package postgres_test

import (
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/ledgertest"
)

func TestLedger_Conformance(t *testing.T) {
	t.Parallel()

	ledgertest.Run(t, func(t *testing.T) ledgertest.Bench {
		t.Helper()

		b := bare(t)
		b.begin(t, berth.Spec{Name: "s"})

		return ledgertest.Bench{
			Ledger: b.store,
			Trial:  func(t *testing.T) berth.PlacementRequest { t.Helper(); return b.next(t, 0) },
			Pass:   b.pass,
		}
	})
}

// pass lets d pass for leases, hosts and GPUs.
func (b *bundle) pass(t *testing.T, d time.Duration) {
	t.Helper()
	b.exec(t, "UPDATE leases SET expires_at = expires_at - $1::interval, created_at = created_at - $1::interval", d)
	b.exec(t, "UPDATE hosts SET last_seen_at = last_seen_at - $1::interval", d)
	b.exec(t, "UPDATE devices SET lost_at = lost_at - $1::interval", d)
}
