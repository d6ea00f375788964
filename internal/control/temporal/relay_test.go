package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/control/temporal"
)

// outbox hands its messages out once and records their results.
type outbox struct {
	mu        sync.Mutex
	messages  []berth.OutboxMessage
	settled   []berth.Delivery
	unclaimed error   // why nothing can be claimed
	noted     []error // how rounds ended
	alive     bool    // whether the context of the last settling lived
}

func (o *outbox) ClaimOutbox(context.Context, int, time.Duration) ([]berth.OutboxMessage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	claimed := o.messages
	o.messages = nil

	return claimed, o.unclaimed
}

func (o *outbox) SettleOutbox(ctx context.Context, d berth.Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.settled, o.alive = append(o.settled, d), ctx.Err() == nil

	return nil
}

func (o *outbox) ListenOutbox(_ context.Context, _ time.Duration, wake func()) error {
	wake()

	return nil
}

func (o *outbox) NoteRound(_ context.Context, part string, err error) {
	if part == health.PartOutbox {
		o.noted = append(o.noted, err)
	}
}

func relayOf(box *outbox, client *temporal.Client) *temporal.Relay {
	return &temporal.Relay{Messages: box, Bound: func() bool { return true }, Client: client, Log: slog.New(slog.DiscardHandler)}
}

// Health reports a failing round, and its recovery.
func TestRelay_NotesHowRoundsEnd(t *testing.T) {
	t.Parallel()

	box := &outbox{}
	relay := relayOf(box, nil)

	for _, err := range []error{errors.New("no claims"), nil} {
		box.unclaimed = err
		require.NoError(t, relay.Run(t.Context()))
		require.Equal(t, err, box.noted[len(box.noted)-1])
	}

	require.Len(t, box.noted, 2)
}

func placed(id int64, workflow string) berth.OutboxMessage {
	return berth.OutboxMessage{ID: id, Kind: berth.OutboxPlaced, WorkflowID: workflow, Payload: json.RawMessage(`{"attempt_id":"a"}`)}
}

// A message that cannot be delivered, or makes no sense, is no other's trouble.
func TestRelay_IsolatesFailures(t *testing.T) {
	t.Parallel()

	server := mocks.NewClient(t)
	server.On("SignalWorkflow", mock.Anything, "bad", "", mock.Anything, mock.Anything).Return(serviceerror.NewUnavailable("broken shard"))
	server.On("SignalWorkflow", mock.Anything, "good", "", mock.Anything, mock.Anything).Return(nil)
	server.On("SignalWorkflow", mock.Anything, "gone", "", mock.Anything, mock.Anything).Return(serviceerror.NewNotFound("ended"))

	box := &outbox{messages: []berth.OutboxMessage{
		placed(1, "bad"),
		{ID: 2, Kind: "odd", Payload: json.RawMessage(`{}`)},
		{ID: 3, Kind: berth.OutboxPlaced, Payload: json.RawMessage(`[]`)},
		placed(4, "good"), placed(5, "gone"),
	}}
	relay := relayOf(box, temporal.NewClient(server, "default", "i"))

	require.NoError(t, relay.Run(t.Context()))
	require.Len(t, box.settled, 1)
	require.Equal(t, []int64{4, 5}, box.settled[0].Delivered)
	require.Empty(t, box.settled[0].Untried)
	require.Len(t, box.settled[0].Failed, 3)
	require.ErrorContains(t, box.settled[0].Failed[1], "broken shard")
	require.ErrorContains(t, box.settled[0].Failed[2], `unknown kind "odd"`)
	require.ErrorContains(t, box.settled[0].Failed[3], "reading outbox message 3")
}

// A relay that stops gives back its undelivered messages, so that another relay
// need not wait for the end of the claim.
func TestRelay_GivesBackWhenItStops(t *testing.T) {
	t.Parallel()

	ctx, stop := context.WithCancel(t.Context())
	server := mocks.NewClient(t)
	server.On("SignalWorkflow", mock.Anything, "hangs", "", mock.Anything, mock.Anything).Return(
		func(ctx context.Context, _, _, _ string, _ any) error {
			stop()
			<-ctx.Done()

			return ctx.Err()
		})

	box := &outbox{messages: []berth.OutboxMessage{placed(1, "hangs")}}
	relay := relayOf(box, temporal.NewClient(server, "default", "i"))

	require.NoError(t, relay.Run(ctx))
	require.Equal(t, []berth.Delivery{{Untried: []int64{1}, Failed: map[int64]error{}}}, box.settled)
	require.True(t, box.alive)
}
