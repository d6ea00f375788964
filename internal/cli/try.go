package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// tryEnd is how long after its end, or after Ctrl-C, a try waits for the server: for the
// rest of a log, or for the cancellation.
const tryEnd = 15 * time.Second

func (o *options) tryCommand() *cobra.Command {
	var settings []string

	cmd := o.fileVerb("try -f FILE", "Run one trial of a sweep file: its log, its metrics, and what was measured",
		func(cmd *cobra.Command, to *remote, file *sweepFile) error {
			one, err := oneTrial(file, settings)
			if err != nil {
				return err
			}

			sweep, err := to.submit(cmd.Context(), one, uuid.NewString())
			if err != nil {
				return err
			}

			warn(cmd, sweep)
			say(cmd.ErrOrStderr(), "trying one trial as sweep %s (%s); Ctrl-C cancels it\n", short(sweep.ID), sweep.Name)

			if err := o.tryTrial(cmd, to, sweep.ID, file.name); cmd.Context().Err() == nil {
				return err
			}

			return to.cancelTry(cmd.Context(), sweep.ID)
		})
	cmd.Example = "  berth try -f sweep.yaml\n  berth try -f sweep.yaml --set epochs=1 --set lr=0.01"
	cmd.Flags().StringArrayVar(&settings, "set", nil, "NAME=VALUE of a parameter, a fixed one too; may be repeated")

	return cmd
}

// tryTrial watches a sweep of one trial, with its log, and prints its result.
func (o *options) tryTrial(cmd *cobra.Command, to *remote, id, file string) error {
	ctx := cmd.Context()
	logs, stopLogs := context.WithCancel(ctx)
	defer stopLogs()

	v := &tryView{lines: lines{w: cmd.ErrOrStderr(), now: o.now}, followed: map[string]bool{}}
	v.follow = func(attempt string) error { return to.followLog(logs, cmd, v.w, attempt) }

	last, err := to.watch(ctx, id, v.show, notice(cmd))
	if err != nil {
		stopLogs()
	}

	late := time.AfterFunc(tryEnd, stopLogs)
	defer late.Stop()

	v.logs.Wait()

	if err != nil {
		return err
	}

	if err := o.printTry(cmd, to, last); err != nil {
		return err
	}

	if last.sweep.State == client.SweepStateSucceeded {
		say(v.w, "\nnext: berth sweep submit -f %s --wait\nhow many such trials run at once, and how long they take: berth sweep preview -f %[1]s\n", file)
	} else {
		say(v.w, "\nits log again: berth trial logs %s 1\nwhen it is mended (a changed script needs its image built again): berth try -f %s\n", short(id), file)
	}

	return new(newSummary(last)).verdict()
}

// printTry prints the trial as `berth trial get` does, with a line for each metric.
func (o *options) printTry(cmd *cobra.Command, to *remote, b board) error {
	if len(b.trials) == 0 {
		return nil
	}

	t := trialDetails(b.trials[0], b.attempts)

	if n := len(b.attempts); n > 0 {
		points, err := to.metrics(cmd.Context(), b.attempts[n-1].ID, "")
		if err != nil {
			return err
		}

		values, last := map[string]int{}, map[string]string{}
		for _, p := range points {
			values[p.Name]++
			last[p.Name] = pointText(p)
		}

		for i, a := range b.attempts { // the last of each stage compared the two runs
			if a.Stage != berth.StageMain && (i == n-1 || b.attempts[i+1].Stage != a.Stage) {
				t.add("stage "+a.Stage, a.Message)
			}
		}

		for _, name := range slices.Sorted(maps.Keys(values)) {
			t.add("metric "+name, plural(values[name], "value", "values")+", last "+last[name])
		}

		if len(values) == 0 {
			t.add("metrics", "none were found")
		}
	}

	return o.print(cmd.OutOrStdout(), b.trials[0], func() table { return t })
}

// cancelTry cancels a try whose user stopped waiting.
func (r *remote) cancelTry(ctx context.Context, id string) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryEnd)
	defer cancel()

	if _, err := answer[client.Sweep](r.CancelSweep(within, id)); err != nil {
		return exitf(ExitInterrupt, "stopped watching, and could not cancel the try: %w; type `berth sweep cancel %s`", err, short(id))
	}

	return exitf(ExitInterrupt, "stopped watching; the try is canceled (sweep %s)", short(id))
}

// tryView writes a line for each change, and the log of each attempt.
type tryView struct {
	lines

	follow   func(attempt string) error
	logs     sync.WaitGroup
	followed map[string]bool // attempts
	waits    string          // the last printed reason
}

func (v *tryView) show(b board) {
	v.lines.show(b)

	for _, trial := range b.trials {
		if len(trial.Waiting) > 0 && trial.Waiting[0].Reason != v.waits {
			v.waits = trial.Waiting[0].Reason
			v.say("it waits: %s", v.waits)
		}
	}

	for _, a := range b.attempts {
		if !v.followed[a.ID] && (a.StartedAt != nil || a.FailureKind != "") {
			v.followed[a.ID] = true
			v.logs.Go(func() {
				if err := v.follow(a.ID); err != nil { // a lost log is no reason to end the watch
					say(v.w, "reading the log: %v\n", err)
				}
			})
		}
	}
}

// oneTrial makes a sweep of one trial of a sweep file. Without settings its values are
// the file's first enqueued ones, else the defaults where every parameter has one,
// else the search's first draw. The values of --set are enqueued, and the server checks
// them like a file's.
func oneTrial(file *sweepFile, settings []string) (*sweepFile, error) {
	one, err := spec.Decode(file.data, file.contentType)
	if err != nil {
		return nil, exitf(ExitValidation, "%s: %w\nwhere it is: berth sweep validate -f %[1]s", file.name, err)
	}

	values := berth.Assignment{}
	if len(one.Enqueue) > 0 {
		values = maps.Clone(one.Enqueue[0])
	}

	for _, setting := range settings {
		name, text, found := strings.Cut(setting, "=")
		if !found {
			return nil, exitf(ExitUsage, "--set %q sets nothing; write --set NAME=VALUE, such as --set epochs=1", setting)
		}

		var v berth.Value
		if json.Unmarshal([]byte(text), &v) != nil {
			v = berth.StringValue(text)
		}

		at := slices.IndexFunc(one.Parameters, func(p berth.Parameter) bool { return p.Name == name && p.Type == berth.ParameterFixed })
		if at >= 0 {
			one.Parameters[at].Value = &v
		} else {
			values[name] = v
		}
	}

	lacksDefault := func(p berth.Parameter) bool { return p.Searched() && p.Default == nil }
	if len(values) > 0 || !slices.ContainsFunc(one.Parameters, lacksDefault) {
		one.Enqueue = []berth.Assignment{values}
	}

	one.Name += " (try)"
	one.Labels = map[string]string{berth.LabelTry: "true"}
	one.Limits.MaxTrials, one.Limits.MaxParallel, one.Limits.MaxFailedTrials = 1, 1, 1

	if one.Search.Algorithm == berth.SearchGrid {
		one.Search.Algorithm = berth.SearchRandom // it ends after one trial as well, and takes enqueued values first
	}

	data, err := json.Marshal(one)

	return &sweepFile{name: "the try", data: data, contentType: "application/json"}, err
}
