package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

const (
	// cancelTimeout bounds how long an interrupted try waits for the server.
	cancelTimeout = 30 * time.Second
	// logTimeout is how long the end of a log may come after the end of its trial.
	logTimeout = 15 * time.Second
)

func (o *options) tryCommand() *cobra.Command {
	var (
		name     string
		settings []string
		timeout  time.Duration
	)

	cmd := o.verb("try -f FILE", "Run one trial of a sweep file: its log, its metrics, and what was measured", cobra.MaximumNArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			file, err := readSweepFile(cmd, name, args)
			if err != nil {
				return err
			}

			wanted, err := tryOf(file, settings)
			if err != nil {
				return err
			}

			t := &trying{o: o, cmd: cmd, to: to, file: file, timeout: timeout}

			return t.run(wanted)
		})
	cmd.Example = "  berth try -f sweep.yaml\n  berth try -f sweep.yaml --set epochs=1 --set lr=0.01"
	fileFlag(cmd, &name)
	cmd.Flags().StringArrayVar(&settings, "set", nil, "NAME=VALUE of a parameter, a fixed one too; may be repeated")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "cancel the try after this long and exit with 124")

	return cmd
}

// trying is one run of `berth try`.
type trying struct {
	o       *options
	cmd     *cobra.Command
	to      *remote
	file    *sweepFile // as the user wrote it
	timeout time.Duration

	changes lines // changes of the trial
	logs    sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of the watch; the view that show is has none
	mu      sync.Mutex
	seen    map[string]bool // attempts whose log is followed
	waits   string          // the last printed reason
}

func (t *trying) run(wanted *sweepFile) error {
	ctx := t.cmd.Context()

	sweep, err := t.to.submit(ctx, wanted, uuid.NewString())
	if err != nil {
		return about(t.file, err)
	}

	t.seen = map[string]bool{}
	t.changes = lines{w: t.cmd.ErrOrStderr(), now: t.o.now}
	say(t.cmd.ErrOrStderr(), "trying one trial as sweep %s (%s); Ctrl-C cancels it\n", short(sweep.ID), sweep.Name)

	if t.timeout > 0 {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}

	logs, stopLogs := context.WithCancel(ctx)
	defer stopLogs()

	t.ctx = logs
	last, err := t.to.watch(ctx, sweep.ID, t, notice(t.cmd))
	t.endLogs(stopLogs, err != nil)

	if err != nil {
		return t.left(ctx, sweep.ID, err)
	}

	result, err := t.result(ctx, last)
	if err != nil {
		return t.left(ctx, sweep.ID, err)
	}

	if err := t.o.printTry(t.cmd.OutOrStdout(), result); err != nil {
		return err
	}

	return result.verdict()
}

// endLogs waits for the ends of the logs, which come a moment after the trial's.
func (t *trying) endLogs(stop context.CancelFunc, now bool) {
	if now {
		stop()
	}

	late := time.AfterFunc(logTimeout, stop)
	defer late.Stop()

	t.logs.Wait()
}

// left cancels a try whose user stopped waiting.
func (t *trying) left(ctx context.Context, id string, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("%w; the try goes on as sweep %s: `berth sweep watch %s`, or `berth sweep cancel %s`", err, short(id), short(id), short(id))
	}

	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()

	if _, failed := answer[client.Sweep](t.to.CancelSweep(within, id)); failed != nil {
		return exitf(ExitInterrupt, "stopped watching, and could not cancel the try: %w; type `berth sweep cancel %s`", failed, short(id))
	}

	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return exitf(ExitTimeout, "the try took longer than %s and is canceled (sweep %s)", t.timeout, short(id))
	}

	return exitf(ExitInterrupt, "interrupted; the try is canceled (sweep %s)", short(id))
}

// show prints the changes, and follows the log of each attempt.
func (t *trying) show(b board) {
	t.changes.show(b)

	for _, trial := range b.trials {
		if trial.State == client.TrialStateWaiting && len(trial.Waiting) > 0 && trial.Waiting[0].Reason != t.waits {
			t.waits = trial.Waiting[0].Reason
			t.changes.say("it waits: %s", t.waits)
		}
	}

	for _, a := range b.attempts {
		if a.StartedAt == nil && a.FailureKind == "" {
			continue
		}

		if !t.seen[a.ID] {
			t.seen[a.ID] = true
			t.follow(a.ID)
		}
	}
}

// close leaves the screen as it is.
func (t *trying) close() {}

// follow prints an attempt's log beside the watch; a log that is lost is no
// reason to end it.
func (t *trying) follow(attempt string) {
	t.logs.Go(func() {
		t.mu.Lock() // one attempt after the other
		defer t.mu.Unlock()

		if err := t.to.followLogTo(t.ctx, t.cmd, t.logOut(), attempt); err != nil && t.ctx.Err() == nil {
			say(t.cmd.ErrOrStderr(), "reading the log: %v\n", err)
		}
	})
}

// logOut is where the log goes: data has standard output for itself.
func (t *trying) logOut() io.Writer {
	if t.o.output == formatTable || t.o.output == "" {
		return t.cmd.OutOrStdout()
	}

	return t.cmd.ErrOrStderr()
}

func pointText(p client.Metric) string {
	if p.Value == nil {
		return p.Status
	}

	return number(*p.Value)
}

func (r *remote) metricPoints(ctx context.Context, attempt string) ([]client.Metric, error) {
	list, err := answer[client.MetricList](r.ListMetrics(ctx, attempt, &client.ListMetricsParams{Limit: some(100_000)}))

	return list.Data, err
}
