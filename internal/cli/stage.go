package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// stages reads the stages with an output, or the stages that trials of a sweep use.
func (r *remote) stages(ctx context.Context, sweep string, limit int) ([]client.Stage, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Stage, string, error) {
		page, err := answer[client.StageList](r.ListStages(ctx, &client.ListStagesParams{Cursor: some(cursor), Limit: some(limit), Sweep: some(sweep)}))

		return page.Data, page.NextCursor, err
	})
}

func (o *options) listStagesCommand() *cobra.Command {
	var (
		sweep string
		limit int
	)

	cmd := o.verb("list", "List the outputs of stages, newest first", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		return show(o, cmd, o.stageTable)(to.stages(cmd.Context(), sweep, limit))
	})
	cmd.Flags().StringVar(&sweep, "sweep", "", "only stages that trials of this sweep use, also those without an output yet")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most; 0 = all")

	return cmd
}

func (o *options) stageTable(stages []client.Stage) table {
	t := table{header: []string{"key", "stage", "sweep", "trial", "host", "made", "took", "stored", "open trials", "ended trials", "state"}}

	for _, s := range stages {
		host, made, took, stored := none, none, none, none
		if out := s.Output; out != nil {
			host, made, took, stored = out.HostName, o.ago(out.MadeAt), span(seconds(out.Seconds)), bytesText(out.Bytes)
		}

		t.add(berth.ShortKey(s.Key), s.Stage, s.SweepName, strconv.Itoa(s.Trial), host, made, took, stored,
			strconv.Itoa(s.OpenTrials), strconv.Itoa(s.EndedTrials), stageState(s))
	}

	return t
}

// stageState is what matters most of a stage to a person.
func stageState(s client.Stage) string {
	switch {
	case s.Output == nil && s.OpenTrials == 0:
		return "no output, and no trial waits for it"
	case s.Output == nil:
		return "no output yet"
	case s.Output.Lost != "":
		return "lost: " + s.Output.Lost
	case s.Held:
		return "needed"
	default:
		return "not needed"
	}
}

func (o *options) getStageCommand() *cobra.Command {
	return o.completeStage(o.verb("get KEY", "Show a stage: who ran it, the parts of its key, and why it was not shared", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			return show(o, cmd, o.stageDetails)(answer[client.Stage](to.GetStage(cmd.Context(), args[0])))
		}))
}

func (o *options) stageDetails(s client.Stage) table {
	var t table

	t.add("stage", s.Stage)
	t.add("key", s.Key)
	t.add("state", stageState(s))

	trial := fmt.Sprintf("trial %d of sweep %s (%s)", s.Trial, s.SweepName, short(s.SweepID))
	if out := s.Output; out != nil {
		t.add("made", fmt.Sprintf("%s on %s, in %s", o.ago(out.MadeAt), out.HostName, span(seconds(out.Seconds))))
		t.add("made by", trial+", attempt "+out.AttemptID)

		if out.Files > 0 {
			t.add("stored", plural(out.Files, "file", "files")+", "+bytesText(out.Bytes))
		}
	} else if s.OpenTrials > 0 {
		t.add("awaited by", trial)
	} else {
		t.add("last used by", trial)
	}

	t.add("used by", fmt.Sprintf("%d open and %d ended trials", s.OpenTrials, s.EndedTrials))
	t.add("why", s.Why)

	if s.Parts != nil {
		addParts(&t, *s.Parts)
	}

	return t
}

// addParts adds what a key is made of.
func addParts(t *table, p client.StageParts) {
	keys := make([]string, len(p.Earlier))
	for i, key := range p.Earlier {
		keys[i] = berth.ShortKey(key)
	}

	var environment []string

	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		environment = append(environment, name+"="+p.Environment[name])
	}

	entrypoint := ""
	if p.Entrypoint {
		entrypoint = "the image's"
	}

	for _, part := range [][2]string{
		{"image", p.Image},
		{"command", strings.Join(p.Command, " ")},
		{"values", p.Values.Text(" ")},
		{"environment", strings.Join(environment, " ")},
		{"workdir", p.Workdir},
		{"entrypoint", entrypoint},
		{"data sets", strings.Join(p.Datasets, " ")},
		{"secrets", strings.Join(p.Secrets, " ")},
		{"earlier stages", strings.Join(keys, " ")},
		{"network", p.SweepID},
	} {
		if part[1] != "" {
			t.add(part[0], part[1])
		}
	}
}

func (o *options) forgetStagesCommand() *cobra.Command {
	return o.completeStage(o.verb("forget KEY...", "Remove the outputs of stages, so that the next trial that needs one runs it again", cobra.MinimumNArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			for _, key := range args {
				if err := confirm(cmd, "forgotten: the next trial that needs stage %s runs it again", berth.ShortKey(key))(to.ForgetStage(cmd.Context(), key)); err != nil {
					return err
				}
			}

			return nil
		}))
}

// completeStage completes the first argument, the key of a stage that has an output.
func (o *options) completeStage(cmd *cobra.Command) *cobra.Command {
	return o.completeFirst(cmd, func(ctx context.Context, to *remote) (words []string) {
		stages, _ := to.stages(ctx, "", 50) // without an answer there are no words
		for _, s := range stages {
			words = append(words, fmt.Sprintf("%s\t%s (sweep %s, trial %d)", berth.ShortKey(s.Key), s.Stage, s.SweepName, s.Trial))
		}

		return words
	})
}
