package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

func (r *remote) trials(ctx context.Context, sweep string, wanted client.ListTrialsParams, limit int) ([]client.Trial, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Trial, string, error) {
		wanted.Cursor, wanted.Limit = some(cursor), some(limit)
		page, err := answer[client.TrialList](r.ListTrials(ctx, sweep, &wanted))

		return page.Data, page.NextCursor, err
	})
}

func (o *options) trialsCommand() *cobra.Command {
	var (
		filter []string
		stage  string
		sorted string
		limit  int
	)

	cmd := o.verb("trials SWEEP", "List the trials of a sweep with their values", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			return show(o, cmd, trialTable)(to.trials(cmd.Context(), args[0], client.ListTrialsParams{
				State: states[client.TrialState](filter), Sort: some(client.TrialSort(sorted)), Stage: some(stage),
			}, limit))
		})
	cmd.Flags().StringSliceVar(&filter, "state", nil, "only trials in these states, such as failed,infeasible")
	cmd.Flags().StringVar(&stage, "stage", "", "only trials that use the output of the stage with this key, or one that begins so")
	cmd.Flags().StringVar(&sorted, "sort", "", "number, value or duration; a minus before it means descending (default number)")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at most; 0 = all")

	return o.completeSweep(cmd)
}

// parameterNames are the parameters of any of the trials, in ascending order.
func parameterNames(trials []client.Trial) []string {
	var names []string

	for _, t := range trials {
		for _, name := range t.Params.Names() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}

	slices.Sort(names)

	return names
}

func parameterCells(t client.Trial, names []string) []string {
	cells := make([]string, len(names))

	for i, name := range names {
		cells[i] = none
		if v, active := t.Params[name]; active {
			cells[i] = v.String()
		}
	}

	return cells
}

// trialTable has a column for each parameter, and for each result beside the objective's value.
func trialTable(trials []client.Trial) table {
	names, results := parameterNames(trials), resultNames(trials)
	t := table{header: slices.Concat([]string{"trial", "state", "value"}, results, []string{"attempts", "took"}, names, []string{"message"})}

	for _, trial := range trials {
		t.rows = append(t.rows, slices.Concat(
			[]string{strconv.Itoa(trial.Number), string(trial.State), maybeNumber(trial.Value)}, resultCells(trial.Results, results),
			[]string{strconv.Itoa(trial.Attempts), took(trial)}, parameterCells(trial, names), []string{why(trial)}))
	}

	return t
}

// resultNames are the metrics of any trial's results, in ascending order.
func resultNames(trials []client.Trial) []string {
	names := make(map[string]bool)

	for _, t := range trials {
		for name := range t.Results {
			names[name] = true
		}
	}

	return slices.Sorted(maps.Keys(names))
}

func resultCells(results map[string]float64, names []string) []string {
	cells := make([]string, len(names))

	for i, name := range names {
		cells[i] = none
		if value, has := results[name]; has {
			cells[i] = number(value)
		}
	}

	return cells
}

func took(t client.Trial) string {
	if t.StartedAt == nil || t.FinishedAt == nil {
		return none
	}

	return span(t.FinishedAt.Sub(*t.StartedAt))
}

// breaksConstraint reports whether a trial has results, but no value by which it is ranked.
func breaksConstraint(t client.Trial) bool { return t.Value == nil && len(t.Results) > 0 }

// why is a trial's message, or why it waits.
func why(t client.Trial) string {
	if t.Message == "" && len(t.Waiting) > 0 {
		return t.Waiting[0].Reason
	}

	if t.State == client.TrialStateSucceeded && !breaksConstraint(t) {
		return ""
	}

	return t.Message
}

func (o *options) bestCommand() *cobra.Command {
	const (
		flag    = "download"
		without = "sweep-ID-trial-NUMBER" // the flag was given without a directory
	)

	var dir string

	cmd := o.verb("best SWEEP", "Show the best trial of a sweep, or download its files", cobra.RangeArgs(1, 2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			download := cmd.Flags().Changed(flag)
			if len(args) > 1 && (!download || dir != without) {
				return exitf(ExitUsage, "%q is one argument too many; write `berth sweep best SWEEP --download %[1]s`", args[1])
			}

			sweep, err := to.sweep(cmd.Context(), args[0])
			if err != nil {
				return err
			}

			if sweep.Best == nil {
				return exitf(ExitNotFound, "sweep %s has no trial with a value; `berth sweep trials %[1]s` says what became of each", short(sweep.ID))
			}

			trial, err := answer[client.Trial](to.GetTrial(cmd.Context(), sweep.ID, sweep.Best.Trial))
			if err != nil {
				return err
			}

			if !download {
				return o.print(cmd.OutOrStdout(), trial, func() table { return bestTable(sweep, trial) })
			}

			switch {
			case len(args) > 1:
				dir = args[1]
			case dir == without:
				dir = ""
			}

			return o.download(cmd, to, trial, 0, nil, dir)
		})
	cmd.Flags().StringVar(&dir, flag, "", "download its files to the directory `DIR`")
	cmd.Flags().Lookup(flag).NoOptDefVal = without

	return o.completeSweep(cmd)
}

func bestTable(sweep client.Sweep, trial client.Trial) table {
	var t table

	t.add("trial", strconv.Itoa(trial.Number))

	if sweep.Objective != nil {
		t.add(sweep.Objective.Metric, number(sweep.Best.Value))
		t.addResults(trial.Results, sweep.Objective.Metric)
	}

	for _, name := range trial.Params.Names() {
		t.add(name, trial.Params[name].String())
	}

	return t
}

// addResults adds a row for each result but those with the names.
func (t *table) addResults(results map[string]float64, but ...string) {
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if !slices.Contains(but, name) {
			t.add(name, number(results[name]))
		}
	}
}
