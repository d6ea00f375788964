package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

// sweeps reads the sweeps that match, the newest first unless wanted says otherwise.
func (r *remote) sweeps(ctx context.Context, wanted client.ListSweepsParams, limit int) ([]client.Sweep, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Sweep, string, error) {
		wanted.Cursor, wanted.Limit = some(cursor), some(limit)
		page, err := answer[client.SweepList](r.ListSweeps(ctx, &wanted))

		return page.Data, page.NextCursor, err
	})
}

func (r *remote) sweep(ctx context.Context, id string) (client.Sweep, error) {
	return answer[client.Sweep](r.GetSweep(ctx, id))
}

func (o *options) listSweepsCommand() *cobra.Command {
	var (
		filter           []string
		name, by, sorted string
		limit            int
	)

	cmd := o.verb("list", "List sweeps, newest first", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		return show(o, cmd, o.sweepTable)(to.sweeps(cmd.Context(), client.ListSweepsParams{
			State: states[client.SweepState](filter), Name: some(name), CreatedBy: some(by), Sort: some(client.SweepSort(sorted)),
		}, limit))
	})
	cmd.Flags().StringSliceVar(&filter, "state", nil, "only sweeps in these states, such as running,paused")
	cmd.Flags().StringVar(&name, "name", "", "only sweeps whose name or note contains this, whatever the case; \"(try)\" finds those of `berth try`, which are left out else once they ended")
	cmd.Flags().StringVar(&by, "created-by", "", "only sweeps that the token of this name made")
	cmd.Flags().StringVar(&sorted, "sort", "", "created_at, name or finished_at; a minus before it means descending (default -created_at)")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most; 0 = all")

	return cmd
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

// progress is such as 12/24, or 12 when the total is not known.
func progress(c client.Counts) string {
	if all := max(c.Planned, c.Total); c.Planned > 0 {
		return fmt.Sprintf("%d/%d", finished(c), all)
	}

	return strconv.Itoa(finished(c))
}

func finished(c client.Counts) int {
	return c.Succeeded + c.Failed + c.Infeasible + c.Canceled + c.Pruned
}

func (o *options) getSweepCommand() *cobra.Command {
	return o.completeSweep(o.verb("get SWEEP", "Show a sweep", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return show(o, cmd, o.sweepDetails)(to.sweep(cmd.Context(), args[0]))
	}))
}

func (o *options) sweepDetails(s client.Sweep) table {
	var t table

	t.add("id", s.ID)
	t.add("name", s.Name)
	t.add("state", string(s.State), s.Reason)
	t.add("image", s.Image, s.ImageDigest)

	if s.Note != "" {
		t.add("note", s.Note)
	}

	c := s.Counts
	t.add("trials", fmt.Sprintf("%s done: %d succeeded, %d stopped early, %d failed, %d infeasible, %d canceled; %d running, %d waiting",
		progress(c), c.Succeeded, c.Pruned, c.Failed, c.Infeasible, c.Canceled, c.Running, c.Waiting))
	t.add("oom retries", strconv.Itoa(c.OomRetries))

	if s.Objective != nil {
		t.add("objective", objectivesText(*s.Objective))
	}

	for _, c := range s.Constraints {
		t.add("constraint", constraintText(c))
	}

	if s.Best != nil {
		t.add("best", fmt.Sprintf("trial %d: %s", s.Best.Trial, number(s.Best.Value)))
	}

	parallel := "auto: as many as fit"
	if s.MaxParallel > 0 {
		parallel = strconv.Itoa(s.MaxParallel)
	}

	t.add("max parallel", parallel)

	if s.Eta != nil {
		t.add("left", span(seconds(s.Eta.MinSeconds))+" to "+span(seconds(s.Eta.MaxSeconds)), s.Eta.Why)
	}

	t.add("created", o.ago(s.CreatedAt)+" by "+s.CreatedBy)

	if s.StartedAt != nil && s.FinishedAt != nil {
		t.add("took", span(s.FinishedAt.Sub(*s.StartedAt)))
	}

	if s.TemporalURL != "" {
		t.add("temporal", s.TemporalURL)
	}

	return t
}

func objectivesText(o client.Objective) string {
	texts := []string{o.Goal + " " + o.Metric}
	for _, further := range o.Further {
		texts = append(texts, further.Goal+" "+further.Metric)
	}

	return strings.Join(texts, ", ")
}

func constraintText(c client.Constraint) string {
	var bounds []string

	if c.Min != nil {
		bounds = append(bounds, "at least "+number(*c.Min))
	}

	if c.Max != nil {
		bounds = append(bounds, "at most "+number(*c.Max))
	}

	return c.Metric + " " + strings.Join(bounds, ", ")
}
