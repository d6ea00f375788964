package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/control/health"
)

// events is an outbox that publishes nothing for this reason.
type events struct {
	err   error
	noted map[string]error
}

func (*events) Lead(ctx context.Context, _ string, lead func(context.Context) error) error {
	return lead(ctx)
}

func (*events) ListenEvents(_ context.Context, _ time.Duration, wake func()) error {
	wake()

	return nil
}

func (e *events) PublishEvents(context.Context, int) (int, error) { return 0, e.err }

func (e *events) NoteRound(_ context.Context, part string, err error) { e.noted[part] = err }

// Health reports a failing round, and its recovery.
func TestPublisher_NotesHowRoundsEnd(t *testing.T) {
	t.Parallel()

	for _, err := range []error{errors.New("no sequence"), nil} {
		outbox := &events{err, make(map[string]error)}
		require.NoError(t, (&api.Publisher{Outbox: outbox, Log: slog.New(slog.DiscardHandler)}).Run(t.Context()))
		require.Equal(t, map[string]error{health.PartEvents: err}, outbox.noted)
	}
}
