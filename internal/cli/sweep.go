package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// sweeps reads the newest sweeps.
func (r *remote) sweeps(ctx context.Context, states []string, limit int) ([]client.Sweep, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Sweep, string, error) {
		params := &client.ListSweepsParams{Cursor: cursor, Limit: limit}
		for _, state := range states {
			params.State = append(params.State, client.SweepState(state))
		}

		page, err := answer[client.SweepList](r.ListSweeps(ctx, params))

		return page.Data, page.NextCursor, err
	})
}

func (r *remote) sweep(ctx context.Context, id string) (client.Sweep, error) {
	return answer[client.Sweep](r.GetSweep(ctx, id))
}

// completeSweep completes the id of a sweep.
func (o *options) completeSweep(cmd *cobra.Command) *cobra.Command {
	return o.completeFirst(cmd, func(ctx context.Context, to *remote) ([]string, error) {
		sweeps, err := to.sweeps(ctx, nil, 50)
		words := make([]string, len(sweeps))

		for i, s := range sweeps {
			words[i] = fmt.Sprintf("%s\t%s (%s)", short(s.ID), s.Name, s.State)
		}

		return words, err
	})
}

func (o *options) listSweepsCommand() *cobra.Command {
	var (
		states []string
		limit  int
	)

	cmd := o.verb("list", "List sweeps, newest first", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		sweeps, err := to.sweeps(cmd.Context(), states, limit)
		if err != nil {
			return err
		}

		return o.print(cmd.OutOrStdout(), listOf(sweeps), func() table { return o.sweepTable(sweeps) })
	})
	cmd.Aliases = []string{"ls"}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only sweeps in these states, such as running,paused")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most; 0 = all")

	return cmd
}

// listOf is what JSON and YAML show of a list: never null.
func listOf[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}

	return rows
}

func (o *options) sweepTable(sweeps []client.Sweep) table {
	t := table{header: []string{"id", "name", "state", "done", "running", "failed", "best", "oom retries", "created"}}

	for _, s := range sweeps {
		best := none
		if s.Best != nil {
			best = number(s.Best.Value)
		}

		t.add(short(s.ID), s.Name, string(s.State), progress(s.Counts), strconv.Itoa(s.Counts.Running),
			strconv.Itoa(s.Counts.Failed+s.Counts.Infeasible), best, strconv.Itoa(s.Counts.OomRetries), o.ago(s.CreatedAt))
	}

	return t
}

// progress is such as 12/24, or 12 when nobody knows how many there will be.
func progress(c client.Counts) string {
	if all := max(c.Planned, c.Total); c.Planned > 0 {
		return fmt.Sprintf("%d/%d", finished(c), all)
	}

	return strconv.Itoa(finished(c))
}

func finished(c client.Counts) int { return c.Succeeded + c.Failed + c.Infeasible + c.Canceled }

func (o *options) getSweepCommand() *cobra.Command {
	return o.completeSweep(o.verb("get SWEEP", "Show a sweep", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		sweep, err := to.sweep(cmd.Context(), args[0])
		if err != nil {
			return err
		}

		return o.print(cmd.OutOrStdout(), sweep, func() table { return o.sweepDetails(sweep) })
	}))
}

func (o *options) sweepDetails(s client.Sweep) table {
	var t table

	t.add("id", s.ID)
	t.add("name", s.Name)
	t.add("state", string(s.State), s.Reason)
	t.add("image", s.Image, s.ImageDigest)

	c := s.Counts
	t.add("trials", fmt.Sprintf("%s done: %d succeeded, %d failed, %d infeasible, %d canceled; %d running, %d waiting",
		progress(c), c.Succeeded, c.Failed, c.Infeasible, c.Canceled, c.Running, c.Waiting))
	t.add("oom retries", strconv.Itoa(c.OomRetries))

	if s.Objective != nil {
		t.add("objective", s.Objective.Goal+" "+s.Objective.Metric)
	}

	if s.Best != nil {
		t.add("best", fmt.Sprintf("trial %d: %s", s.Best.Trial, number(s.Best.Value)))
	}

	parallel := "auto: as many as fit"
	if s.MaxParallel > 0 {
		parallel = strconv.Itoa(s.MaxParallel)
	}

	t.add("max parallel", parallel)
	t.add("created", o.ago(s.CreatedAt)+" by "+s.CreatedBy)

	if s.StartedAt != nil && s.FinishedAt != nil {
		t.add("took", span(s.FinishedAt.Sub(*s.StartedAt)))
	}

	return t
}

func (r *remote) trials(ctx context.Context, sweep string, states []string, limit int) ([]client.Trial, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Trial, string, error) {
		params := &client.ListTrialsParams{Cursor: cursor, Limit: limit}
		for _, state := range states {
			params.State = append(params.State, client.TrialState(state))
		}

		page, err := answer[client.TrialList](r.ListTrials(ctx, sweep, params))

		return page.Data, page.NextCursor, err
	})
}

func (o *options) trialsCommand() *cobra.Command {
	var (
		states []string
		limit  int
	)

	cmd := o.verb("trials SWEEP", "List the trials of a sweep with their values", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			trials, err := to.trials(cmd.Context(), args[0], states, limit)
			if err != nil {
				return err
			}

			return o.print(cmd.OutOrStdout(), listOf(trials), func() table { return trialTable(trials) })
		})
	cmd.Flags().StringSliceVar(&states, "state", nil, "only trials in these states, such as failed,infeasible")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at most; 0 = all")

	return o.completeSweep(cmd)
}

// trialTable has a column for each parameter; CSV knows more of each trial.
func trialTable(trials []client.Trial) table {
	var names []string

	for _, t := range trials {
		for _, name := range t.Params.Names() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}

	slices.Sort(names)

	t := table{header: append(append([]string{"trial", "state", "value", "attempts", "took"}, names...), "message")}

	for _, trial := range trials {
		row := []string{strconv.Itoa(trial.Number), string(trial.State), maybeNumber(trial.Value), strconv.Itoa(trial.Attempts), took(trial)}

		for _, name := range names {
			value := none
			if v, active := trial.Params[name]; active {
				value = v.String()
			}

			row = append(row, value)
		}

		t.rows = append(t.rows, append(row, why(trial)))
	}

	return t
}

func took(t client.Trial) string {
	if t.StartedAt == nil || t.FinishedAt == nil {
		return none
	}

	return span(t.FinishedAt.Sub(*t.StartedAt))
}

// why is what a trial says of itself, or why it waits.
func why(t client.Trial) string {
	if t.Message == "" && len(t.Waiting) > 0 {
		return t.Waiting[0].Reason
	}

	if t.State == client.TrialStateSucceeded {
		return ""
	}

	return t.Message
}

func (o *options) bestCommand() *cobra.Command {
	return o.completeSweep(o.verb("best SWEEP", "Show the best trial of a sweep", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			sweep, err := to.sweep(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			if sweep.Best == nil {
				return exitf(ExitNotFound, "sweep %s has no trial with a value yet", short(sweep.ID))
			}

			trial, err := answer[client.Trial](to.GetTrial(cmd.Context(), sweep.ID, sweep.Best.Trial))
			if err != nil {
				return err
			}

			return o.print(cmd.OutOrStdout(), trial, func() table { return bestTable(sweep, trial) })
		}))
}

func bestTable(sweep client.Sweep, trial client.Trial) table {
	var t table

	t.add("trial", strconv.Itoa(trial.Number))

	if sweep.Objective != nil {
		t.add(sweep.Objective.Metric, number(sweep.Best.Value))
	}

	for _, name := range berth.Assignment(trial.Params).Names() {
		t.add(name, trial.Params[name].String())
	}

	return t
}
