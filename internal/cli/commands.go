package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

// Commands are the client commands, to be added to the root. docker connects to
// this machine's Docker, for the commands that look into images.
func Commands(docker func() (LocalDocker, error)) []*cobra.Command {
	return newOptions(docker).commands()
}

func (o *options) commands() []*cobra.Command {
	nouns := []*cobra.Command{
		o.noun("sweep", "Submit, watch and steer sweeps",
			o.submitCommand(), o.importCommand(), o.validateCommand(), o.previewCommand(), o.listSweepsCommand(), o.getSweepCommand(), o.watchCommand(),
			o.trialsCommand(), o.bestCommand(), o.insightCommand(), o.reportCommand(), o.exportCommand(),
			o.steerCommand("pause", "Start no trial until resumed; running ones go on", (*client.Client).PauseSweep),
			o.steerCommand("resume", "Start trials again after a pause", (*client.Client).ResumeSweep),
			o.steerCommand("stop", "Start no trial any more; running ones finish", (*client.Client).StopSweep),
			o.steerCommand("cancel", "Stop the containers of a sweep and end it", (*client.Client).CancelSweep),
			o.deleteSweepsCommand(), o.setCommand(), o.copyCommand("clone", "Submit the same spec as a new sweep", (*remote).clone),
			o.copyCommand("rerun-failed", "Submit the values of the failed, infeasible and canceled trials as a new sweep", (*remote).rerunFailed)),
		o.noun("trial", "Look at one trial",
			o.getTrialCommand(), o.setTrialCommand(), o.attemptsCommand(), o.logsCommand(), o.metricsCommand(), o.filesCommand(), o.downloadCommand()),
		o.noun("probe", "What was measured of each memory shape",
			o.listProbesCommand(), o.getProbeCommand(), o.forgetProbeCommand()),
		o.noun("stage", "Work that trials share", o.listStagesCommand(), o.getStageCommand(), o.forgetStagesCommand()),
		o.noun("host", "Machines that run trials",
			o.listHostsCommand(), o.hostStateCommand("drain", "Place nothing new on a machine; what runs there goes on", "draining"),
			o.hostStateCommand("ready", "Place trials on a machine again", "ready"), o.removeHostCommand()),
		o.noun("device", "GPUs", o.listDevicesCommand(), o.cordonDeviceCommand(), o.readyDeviceCommand()),
		o.noun("token", "Who may use the API",
			o.createTokenCommand(), o.listTokensCommand(), o.revokeTokenCommand()),
		o.noun("secret", "What trials may read and no one else",
			o.setSecretCommand(), o.listSecretsCommand(), o.deleteSecretCommand()),
		o.noun("search", "Compare searches without running trials", o.simulateCommand()),
		o.imageCommand(),
		o.tryCommand(),
		o.eventsCommand(),
	}

	for _, cmd := range nouns {
		o.bind(cmd)
	}

	return append(nouns, o.initCommand())
}

// Explain has a command that only has others below it say what a mistyped one should be.
func Explain(cmd *cobra.Command) {
	cmd.Args, cmd.SuggestionsMinimumDistance = onlyVerbs, 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SetFlagErrorFunc(usageFlags) // also of those below
}

// noun is a command that only has verbs.
func (o *options) noun(name, about string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: about}
	Explain(cmd)
	cmd.AddCommand(verbs...)

	for _, verb := range verbs {
		verb.Aliases = otherVerbs[verb.Name()]
	}

	return cmd
}

// otherVerbs are other tools' names for our verbs.
var otherVerbs = map[string][]string{
	"delete": {"rm"},
	"get":    {"show", "describe", "status"},
	"list":   {"ls", "ps"},
	"logs":   {"log"},
	"submit": {"create", "run"},
}

// verb runs with a connection.
func (o *options) verb(use, about string, args cobra.PositionalArgs, run func(cmd *cobra.Command, to *remote, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: about, Args: usage(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := o.connect()
			if err != nil {
				return err
			}

			return run(cmd, to, args)
		},
	}
}

// completeTimeout bounds the wait after the tab key.
const completeTimeout = time.Second

// completeSweep completes the first argument, the id of a sweep.
func (o *options) completeSweep(cmd *cobra.Command) *cobra.Command {
	return o.completeFirst(cmd, func(ctx context.Context, to *remote) (words []string) {
		sweeps, _ := to.sweeps(ctx, client.ListSweepsParams{}, 50) // without an answer there are no words
		for _, s := range sweeps {
			words = append(words, fmt.Sprintf("%s\t%s (%s)", short(s.ID), s.Name, s.State))
		}

		return words
	})
}

// completeFirst completes the first argument with words of the server.
func (o *options) completeFirst(cmd *cobra.Command, find func(ctx context.Context, to *remote) []string) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		to, err := o.connect()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()

		return find(ctx, to), cobra.ShellCompDirectiveNoFileComp
	}

	return cmd
}
