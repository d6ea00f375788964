package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth/api/client"
)

const (
	watchCollect = 300 * time.Millisecond // events of this long are one look
	watchPoll    = 5 * time.Second        // events are hints
	stateEvent   = "sweep.state"
	// watchAttempts is up to how many trials every look reads all attempts;
	// beyond, only the end does.
	watchAttempts = 1000
)

// following is whether and how long a command waits for the end of a sweep.
type following struct {
	wait    bool
	timeout time.Duration
}

func (f *following) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.wait, "wait", false, "watch the sweep until it ends; Ctrl-C only stops watching")
	f.bindTimeout(cmd)
}

func (f *following) bindTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "stop watching after this long and exit with 124; the sweep goes on")
}

func (o *options) watchCommand() *cobra.Command {
	var follow following

	cmd := o.verb("watch SWEEP", "Watch a sweep until it ends", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return o.follow(cmd, to, args[0], follow)
	})
	follow.bindTimeout(cmd)

	return o.completeSweep(cmd)
}

// board is a sweep as it stands.
type board struct {
	sweep    client.Sweep
	trials   []client.Trial
	attempts []client.Attempt
}

// view shows a sweep as it goes.
type view interface {
	show(b board)
	// close leaves the screen to the next output.
	close()
}

// follow watches a sweep to its end and shows its result.
func (o *options) follow(cmd *cobra.Command, to *remote, id string, f following) error {
	ctx := cmd.Context()

	if f.timeout > 0 {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}

	lost := notice(cmd)

	sweep, err := to.sweep(ctx, id) // a wrong id or server fails at once
	if err != nil && (f.wait || !refusedToConnect(err)) {
		sweep, err = patiently(ctx, lost, func() (client.Sweep, error) { return to.sweep(ctx, id) })
	}

	if err != nil {
		return detached(ctx, id, err)
	}

	shown := o.viewFor(cmd.ErrOrStderr())
	last, err := to.watch(ctx, sweep.ID, shown, lost)

	shown.close()

	if err != nil {
		return detached(ctx, sweep.ID, err)
	}

	summary, err := patiently(ctx, lost, func() (summary, error) { return to.summarize(ctx, last) })
	if err != nil {
		return detached(ctx, sweep.ID, err)
	}

	if err := o.printSummary(cmd.OutOrStdout(), summary); err != nil {
		return err
	}

	return summary.verdict()
}

// detached says that watching ended before the sweep did, when that is so.
func detached(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return exitf(ExitTimeout, "sweep %s has not ended in time and goes on; `berth sweep watch %s` watches again", short(id), short(id))
	case ctx.Err() != nil:
		return exitf(ExitInterrupt, "stopped watching; sweep %s goes on: `berth sweep watch %s`", short(id), short(id))
	default:
		return err
	}
}

// viewFor draws bars on a terminal, and writes lines anywhere else.
func (o *options) viewFor(w io.Writer) view {
	if o.isTerminal(w) {
		return newBars(w, o.now)
	}

	return &lines{w: w, now: o.now}
}

// watch shows the sweep after every change until it ends, and returns it as it
// is then.
func (r *remote) watch(ctx context.Context, id string, shown view, lost func(error)) (board, error) {
	var last board

	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()

	group, ctx := errgroup.WithContext(ctx)
	state := make(chan struct{}, 1)

	group.Go(func() error {
		events := r.events(id)
		events.regain, events.lost = wake, lost
		err := events.run(ctx, func(e serverEvent) error {
			if e.kind == stateEvent {
				select {
				case state <- struct{}{}:
				default:
				}
			}

			wake()

			return nil
		})

		if ctx.Err() != nil { // the sweep has ended, or the caller left
			return nil //nolint:nilerr // see above
		}

		return err
	})
	group.Go(func() error {
		defer stop()

		var err error

		last, err = r.look(ctx, id, shown, changed, state, lost)

		return err
	})

	err := group.Wait()

	return last, err
}

// look reads the sweep whenever something changed, a moment later, as changes
// come in bunches; at once when the sweep's own state did, which may be its end.
// The sweep goes on while the server is in trouble, and so does look.
func (r *remote) look(ctx context.Context, id string, shown view, changed, state <-chan struct{}, lost func(error)) (board, error) {
	poll := time.NewTicker(watchPoll)
	defer poll.Stop()

	for {
		b, err := patiently(ctx, lost, func() (board, error) { return r.board(ctx, id) })

		switch {
		case ctx.Err() != nil:
			return b, ctx.Err()
		case err != nil:
			return b, err
		}

		shown.show(b)

		if ended(b.sweep.State) {
			return b, nil
		}

		if err := nextLook(ctx, changed, state, poll.C); err != nil {
			return b, err
		}
	}
}

// nextLook waits until there may be something new to see.
func nextLook(ctx context.Context, changed, state <-chan struct{}, poll <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-poll:
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-state:
	case <-time.After(watchCollect):
	}

	return nil
}

func ended(state client.SweepState) bool {
	switch state {
	case client.SweepStateSucceeded, client.SweepStateFailed, client.SweepStateStopped, client.SweepStateCanceled:
		return true
	default:
		return false
	}
}

// board reads the sweep in its current state. It reads the sweep first: rows
// read after its end are complete.
func (r *remote) board(ctx context.Context, id string) (board, error) {
	var (
		b   board
		err error
	)

	if b.sweep, err = r.sweep(ctx, id); err != nil {
		return b, err
	}

	if b.trials, err = r.trials(ctx, id, client.ListTrialsParams{}, 0); err != nil {
		return b, err
	}

	if len(b.trials) <= watchAttempts || ended(b.sweep.State) {
		b.attempts, err = r.sweepAttempts(ctx, id)
	}

	return b, err
}

func (r *remote) sweepAttempts(ctx context.Context, id string) ([]client.Attempt, error) {
	return pages(0, func(cursor string, limit int) ([]client.Attempt, string, error) {
		page, err := answer[client.AttemptList](r.ListSweepAttempts(ctx, id, &client.ListSweepAttemptsParams{Cursor: some(cursor), Limit: some(limit)}))

		return page.Data, page.NextCursor, err
	})
}

// newest is the last attempt of each trial, by its number.
func (b board) newest() map[int]client.Attempt {
	newest := make(map[int]client.Attempt, len(b.trials))

	for _, a := range b.attempts {
		if a.Number >= newest[a.TrialNumber].Number {
			newest[a.TrialNumber] = a
		}
	}

	return newest
}

// peaks is the largest measured memory of each shape, by its key.
func (b board) peaks() map[string]int64 {
	peaks := make(map[string]int64)
	for _, a := range b.attempts {
		peaks[a.ShapeKey] = max(peaks[a.ShapeKey], a.Usage.MemoryPeakBytes)
	}

	return peaks
}
