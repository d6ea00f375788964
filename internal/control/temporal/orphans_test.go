package temporal_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/control/temporal"
)

const sweepID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

// unknown is a database that does not say whose it is.
type unknown struct {
	temporal.OpenLedger
	temporal.Installations

	noted func(part string, err error)
}

func (unknown) Lead(ctx context.Context, _ string, lead func(ctx context.Context) error) error {
	return lead(ctx)
}

func (unknown) Installation(context.Context) (berth.Installation, error) {
	return berth.Installation{}, errors.New("no row")
}

func (u unknown) NoteRound(_ context.Context, part string, err error) { u.noted(part, err) }

// Health reports a failing round.
func TestOrphans_NoteHowRoundsEnd(t *testing.T) {
	t.Parallel()

	ctx, stop := context.WithCancel(t.Context())
	noted := make(map[string]error)
	ledger := unknown{noted: func(part string, err error) {
		noted[part] = err

		stop()
	}}
	log := slog.New(slog.DiscardHandler)
	orphans := &temporal.Orphans{Ledger: ledger, Identity: &temporal.Identity{Ledger: ledger, Log: log}, Log: log}

	require.ErrorIs(t, orphans.Run(ctx), context.Canceled)
	require.Len(t, noted, 1)
	require.ErrorContains(t, noted[health.PartWorkflows], "no row")
}
