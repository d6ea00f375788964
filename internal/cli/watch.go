package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

const (
	// watchEvery is the pause between two looks, or watchPart times as long as the look
	// took: a watcher of a large sweep does not keep the server busy.
	watchEvery = time.Second
	watchPart  = 10
	watchMost  = 30 * time.Second
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
		sweep, err = patiently(ctx, 0, lost, func() (client.Sweep, error) { return to.sweep(ctx, id) })
	}

	if err != nil {
		return detached(ctx, id, err)
	}

	shown := &lines{w: cmd.ErrOrStderr(), now: o.now}

	last, err := to.watch(ctx, sweep.ID, shown.show, lost)
	if err != nil {
		return detached(ctx, short(sweep.ID), err)
	}

	summary, err := patiently(ctx, 0, lost, func() (summary, error) { return to.summarize(ctx, last) })
	if err != nil {
		return detached(ctx, short(sweep.ID), err)
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
		return exitf(ExitTimeout, "sweep %s has not ended in time and goes on; `berth sweep watch %[1]s` watches again", id)
	case ctx.Err() != nil:
		return exitf(ExitInterrupt, "stopped watching; sweep %s goes on: `berth sweep watch %[1]s`", id)
	default:
		return err
	}
}

// watch shows the sweep again and again until it ends, and returns it as it is then. The
// sweep goes on while the server is in trouble, and so does watch.
func (r *remote) watch(ctx context.Context, id string, show func(board), lost func(error)) (board, error) {
	for {
		var took time.Duration // of the look that the server answered: an outage is no load

		b, err := patiently(ctx, 0, lost, func() (board, error) {
			began := time.Now()
			b, err := r.board(ctx, id)
			took = time.Since(began)

			return b, err
		})
		if err != nil {
			return b, err
		}

		show(b)

		if ended(b.sweep.State) {
			return b, nil
		}

		select {
		case <-ctx.Done():
			return b, ctx.Err()
		case <-time.After(min(max(watchEvery, watchPart*took), watchMost)):
		}
	}
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
