package cli

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

func (r *remote) clone(ctx context.Context, id, key string, change client.SweepCopy) (*http.Response, error) {
	return r.CloneSweep(ctx, id, &client.CloneSweepParams{IdempotencyKey: some(key)}, change)
}

func (r *remote) rerunFailed(ctx context.Context, id, key string, change client.SweepCopy) (*http.Response, error) {
	return r.RerunFailedTrials(ctx, id, &client.RerunFailedTrialsParams{IdempotencyKey: some(key)}, change)
}

// steerCommand asks something of a running sweep.
func (o *options) steerCommand(verb, about string, ask func(to *client.Client, ctx context.Context, id string, edit ...client.RequestEditorFn) (*http.Response, error)) *cobra.Command {
	return o.completeSweep(o.verb(verb+" SWEEP", about, cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return show(o, cmd, stateTable)(answer[client.Sweep](ask(to.Client, cmd.Context(), args[0])))
	}))
}

// stateTable is the sweep as it is after a change.
func stateTable(sweep client.Sweep) table {
	return table{rows: [][]string{{short(sweep.ID), sweep.Name, string(sweep.State)}}}
}

// deleteSweepsCommand deletes for good, so it asks for confirmation.
func (o *options) deleteSweepsCommand() *cobra.Command {
	var yes bool

	cmd := o.verb("delete SWEEP...", "Delete ended sweeps with their trials, results, logs and files", cobra.MinimumNArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			if !yes {
				return exitf(ExitUsage, "this deletes results, logs and files for good; add --yes to do it")
			}

			sweeps := make([]client.Sweep, len(args))

			for i, ref := range args { // before the first is deleted
				sweep, err := to.sweep(cmd.Context(), ref)
				if err != nil {
					return err
				}

				if sweep.Name != ref && len(ref) < berth.DeletePrefix {
					return exitf(ExitUsage, "%q is too short to delete a sweep for good; give its name, or at least the %d characters of its id that `berth sweep list` shows",
						ref, berth.DeletePrefix)
				}

				sweeps[i] = sweep
			}

			for _, sweep := range sweeps {
				if err := confirm(cmd, "deleted sweep %s (%s)", short(sweep.ID), sweep.Name)(to.DeleteSweep(cmd.Context(), sweep.ID)); err != nil {
					return err
				}
			}

			return nil
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "delete for good")

	return o.completeSweep(cmd)
}

func (o *options) setCommand() *cobra.Command {
	var (
		parallel int
		note     string
	)

	cmd := o.verb("set SWEEP", "Change how many trials of a sweep run at once, or its note", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			var change client.SweepPatch
			if cmd.Flags().Changed("max-parallel") {
				change.MaxParallel = &parallel
			}

			if cmd.Flags().Changed("note") {
				change.Note = &note
			}

			if change == (client.SweepPatch{}) || parallel < 0 {
				return exitf(ExitUsage, "say what to change: --max-parallel N (0 = as many as fit), or --note TEXT")
			}

			return show(o, cmd, stateTable)(answer[client.Sweep](to.UpdateSweep(cmd.Context(), args[0], change)))
		})
	cmd.Flags().IntVar(&parallel, "max-parallel", 0, "trials at once; 0 = as many as fit")
	bindNote(cmd, &note)

	return o.completeSweep(cmd)
}

func (o *options) setTrialCommand() *cobra.Command {
	var note string

	cmd := o.verb("set SWEEP NUMBER", "Change the note of a trial", cobra.ExactArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			number, err := trialNumber(args[1])
			if err == nil && !cmd.Flags().Changed("note") {
				err = exitf(ExitUsage, "say what to note with --note TEXT")
			}

			if err != nil {
				return err
			}

			return show(o, cmd, func(trial client.Trial) table {
				return table{rows: [][]string{{strconv.Itoa(trial.Number), string(trial.State), trial.Note}}}
			})(answer[client.Trial](to.UpdateTrial(cmd.Context(), args[0], number, client.TrialPatch{Note: note})))
		})
	bindNote(cmd, &note)

	return o.completeSweep(cmd)
}

func bindNote(cmd *cobra.Command, note *string) {
	cmd.Flags().StringVar(note, "note", "", `a note for people; words such as #baseline are its tags, and `+"`berth sweep list --name`"+` finds both; "" removes it`)
}

// copyCommand makes a new sweep of an old one.
func (o *options) copyCommand(
	verb, about string, ask func(to *remote, ctx context.Context, id, key string, change client.SweepCopy) (*http.Response, error),
) *cobra.Command {
	var (
		name, key string
		follow    following
	)

	cmd := o.verb(verb+" SWEEP", about, cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		sweep, err := answer[client.Sweep](ask(to, cmd.Context(), args[0], cmp.Or(key, uuid.NewString()), client.SweepCopy{Name: name}))
		if err != nil {
			return err
		}

		return o.submitted(cmd, to, sweep, follow)
	})
	cmd.Flags().StringVar(&name, "name", "", "name of the new sweep; default: the old one's")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "makes a repeated call answer with the same new sweep")
	follow.bind(cmd)

	return o.completeSweep(cmd)
}

// submitted says that a sweep was accepted, and waits for its end when asked to.
func (o *options) submitted(cmd *cobra.Command, to *remote, sweep client.Sweep, follow following) error {
	if follow.wait {
		say(cmd.ErrOrStderr(), "sweep %s (%s) submitted\n", sweep.ID, sweep.Name)
	}

	if sweep.TemporalURL != "" && (follow.wait || o.output == formatTable) {
		say(cmd.ErrOrStderr(), "in Temporal: %s\n", sweep.TemporalURL)
	}

	if follow.wait {
		return o.follow(cmd, to, sweep.ID, follow)
	}

	return o.print(cmd.OutOrStdout(), sweep, func() table {
		return table{rows: [][]string{{sweep.ID, sweep.Name, string(sweep.State)}}}
	})
}
