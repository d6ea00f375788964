package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// trialNumber reads the second argument of a trial command.
func trialNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, exitf(ExitUsage, "a trial is named by its number in the sweep, from 1, not %q", text)
	}

	return n, nil
}

func (o *options) getTrialCommand() *cobra.Command {
	return o.completeSweep(o.verb("get SWEEP NUMBER", "Show a trial", cobra.ExactArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			attempts, err := to.attempts(cmd.Context(), args)
			if err != nil {
				return err
			}

			return show(o, cmd, func(trial client.Trial) table { return trialDetails(trial, attempts) })(to.trial(cmd.Context(), args))
		}))
}

// sourceTexts say where the value of an attempt came from.
var sourceTexts = map[string]string{
	berth.MetricsFile: "its metrics file", berth.MetricsStdout: "what it printed", berth.MetricsTensorBoard: "its TensorBoard event files",
	berth.MetricsShim: "Keras, through the shim",
}

// originText is such as "tpe, which knew 37 ended trials and 22 without a result".
func originText(o client.Origin) string {
	if o.Ended == 0 && o.Prior == 0 {
		return o.By
	}

	earlier := ""
	if o.Prior > 0 {
		earlier = fmt.Sprintf(", %d of earlier sweeps", o.Prior)
	}

	return fmt.Sprintf("%s, which knew %s%s and %d without a result", o.By, plural(o.Ended, "ended trial", "ended trials"), earlier, o.Open)
}

// rungText is how early stopping judged a trial at a rung.
func rungText(r client.Rung) string {
	if r.Stop {
		return "stopped: " + r.Why
	}

	return "goes on: " + r.Why
}

func trialDetails(trial client.Trial, attempts []client.Attempt) table {
	var t table

	t.add("trial", strconv.Itoa(trial.Number))
	t.add("state", string(trial.State), trial.FailureKind)
	t.add("value", maybeNumber(trial.Value))
	t.addResults(trial.Results)

	if len(attempts) > 0 {
		if text := sourceTexts[attempts[len(attempts)-1].MetricSource]; text != "" && trial.Value != nil {
			t.add("value from", text)
		}
	}

	if text := originText(trial.Origin); text != "" {
		t.add("values by", text)
	}

	if trial.Message != "" {
		t.add("message", trial.Message)
	}

	if trial.Note != "" {
		t.add("note", trial.Note)
	}

	if len(attempts) > 0 && attempts[len(attempts)-1].Resumed != "" {
		t.add("resumed", attempts[len(attempts)-1].Resumed)
	}

	for _, rung := range trial.Rungs {
		t.add("judged", rungText(rung))
	}

	for _, reason := range trial.Waiting {
		t.add("waits", reason.Reason)
	}

	if trial.OutputsRemoved != "" {
		t.add("outputs", "removed: "+trial.OutputsRemoved)
	}

	t.add("attempts", strconv.Itoa(trial.Attempts))
	if n := len(attempts); n > 0 && attempts[n-1].Usage.MemoryPeakBytes > 0 {
		t.add("measured", usageText(attempts[n-1]))
	}

	t.add("took", took(trial))
	t.add("shape", berth.ShortKey(trial.ShapeKey))

	for _, name := range trial.Params.Names() {
		t.add(name, trial.Params[name].String())
	}

	if trial.TemporalURL != "" {
		t.add("temporal", trial.TemporalURL)
	}

	return t
}

// trial reads the trial that the arguments name: its sweep, and its number there.
func (r *remote) trial(ctx context.Context, args []string) (client.Trial, error) {
	n, err := trialNumber(args[1])
	if err != nil {
		return client.Trial{}, err
	}

	return answer[client.Trial](r.GetTrial(ctx, args[0], n))
}

// attempts reads the attempts of the trial that the arguments name.
func (r *remote) attempts(ctx context.Context, args []string) ([]client.Attempt, error) {
	n, err := trialNumber(args[1])
	if err != nil {
		return nil, err
	}

	list, err := answer[client.AttemptList](r.ListTrialAttempts(ctx, args[0], n))

	return list.Data, err
}

func (o *options) attemptsCommand() *cobra.Command {
	return o.completeSweep(o.verb("attempts SWEEP NUMBER", "List the attempts of a trial: reserved, measured, how each ended", cobra.ExactArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			return show(o, cmd, attemptTable)(to.attempts(cmd.Context(), args))
		}))
}

func attemptTable(attempts []client.Attempt) table {
	t := table{header: []string{"attempt", "stage", "purpose", "state", "ended", "exit", "reserved", "peak", "gpu", "gpu reserved", "gpu peak", "cores", "took", "id", "message"}}

	for _, a := range attempts {
		exit := none
		if a.ExitCode != nil {
			exit = strconv.Itoa(*a.ExitCode)
		}

		took := none
		if a.Usage.WallSeconds > 0 {
			took = span(seconds(a.Usage.WallSeconds))
		}

		t.add(strconv.Itoa(a.Number), a.Stage, a.Purpose, string(a.State), cmp.Or(a.FailureKind, none), exit, bytesText(a.Demand.MemoryBytes),
			bytesText(a.Usage.MemoryPeakBytes), cmp.Or(a.DeviceID, none), bytesText(a.Demand.DeviceBytes), bytesText(a.Usage.DevicePeakBytes),
			cores(a.Demand.CPUMilli), took, a.ID, a.Message)
	}

	if !slices.ContainsFunc(attempts, func(a client.Attempt) bool { return a.DeviceID != "" }) {
		t.drop(slices.Index(t.header, "gpu"), 3)
	}

	if !slices.ContainsFunc(attempts, func(a client.Attempt) bool { return a.Stage != "main" }) {
		t.drop(slices.Index(t.header, "stage"), 1)
	}

	return t
}

// attempt is the wanted attempt of a trial; 0 = the last.
func (r *remote) attempt(ctx context.Context, args []string, wanted int) (client.Attempt, error) {
	var none client.Attempt

	attempts, err := r.attempts(ctx, args)
	if err != nil {
		return none, err
	}

	for _, attempt := range slices.Backward(attempts) {
		if wanted == 0 || attempt.Number == wanted {
			return attempt, nil
		}
	}

	if wanted == 0 {
		return none, exitf(ExitNotFound, "trial %s has not started yet", args[1])
	}

	return none, exitf(ExitNotFound, "trial %s has no attempt %d", args[1], wanted)
}

func (o *options) logsCommand() *cobra.Command {
	var (
		wanted int
		follow bool
	)

	cmd := o.verb("logs SWEEP NUMBER", "Print what a trial wrote", cobra.ExactArgs(2), func(cmd *cobra.Command, to *remote, args []string) error {
		attempt, err := to.attempt(cmd.Context(), args, wanted)
		if err != nil {
			return err
		}

		if follow {
			return to.followLog(cmd.Context(), cmd, cmd.OutOrStdout(), attempt.ID)
		}

		return to.printLog(cmd.Context(), cmd.OutOrStdout(), attempt.ID)
	})
	cmd.Flags().IntVar(&wanted, "attempt", 0, "which attempt; default: the last")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as it writes, until it ends")

	return o.completeSweep(cmd)
}

// printLog reads the whole log, piece by piece.
func (r *remote) printLog(ctx context.Context, w io.Writer, attemptID string) error {
	for offset := int64(0); ; {
		response, err := r.ReadLog(ctx, attemptID, &client.ReadLogParams{Offset: some(offset)}, asText)
		if err := receive(response, err, w); err != nil {
			return err
		}

		next, err := strconv.ParseInt(response.Header.Get("X-Next-Offset"), 10, 64) // not the offset plus the bytes read: a log beyond its limit has a gap
		if err != nil {
			return exitf(ExitUnreachable, "the server does not say where its log goes on: is a Berth there? (%w)", err)
		}

		if next <= offset {
			return nil
		}

		offset = next
	}
}

func (o *options) metricsCommand() *cobra.Command {
	var (
		wanted int
		name   string
	)

	cmd := o.verb("metrics SWEEP NUMBER", "List the values a trial reported", cobra.ExactArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			attempt, err := to.attempt(cmd.Context(), args, wanted)
			if err != nil {
				return err
			}

			return show(o, cmd, metricTable)(to.metrics(cmd.Context(), attempt.ID, name))
		})
	cmd.Flags().IntVar(&wanted, "attempt", 0, "which attempt; default: the last")
	cmd.Flags().StringVar(&name, "name", "", "only this metric")

	return o.completeSweep(cmd)
}

// metrics reads what an attempt reported, by step; an empty name = all of it.
func (r *remote) metrics(ctx context.Context, attemptID, name string) ([]client.Metric, error) {
	list, err := answer[client.MetricList](r.ListMetrics(ctx, attemptID, &client.ListMetricsParams{Name: some(name), Limit: some(100_000)}))

	return list.Data, err
}

// pointText is the value of a point, or its status, such as nan.
func pointText(p client.Metric) string {
	if p.Value == nil {
		return p.Status
	}

	return fmt.Sprint(*p.Value)
}

func metricTable(points []client.Metric) table {
	t := table{header: []string{"metric", "step", "value", "at"}}

	for _, p := range points {
		t.add(p.Name, strconv.FormatInt(p.Step, 10), pointText(p), p.At.Format(time.RFC3339))
	}

	return t
}
