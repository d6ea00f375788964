package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// reportTrials is how many trials a report lists unless the user says.
const reportTrials = 20

func (o *options) reportCommand() *cobra.Command {
	var limit int

	cmd := o.verb("report SWEEP", "Show what a sweep used, and what packing saved", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			var report client.SweepReport

			trials, err := pages(limit, func(cursor string, limit int) ([]client.ReportTrial, string, error) {
				page, err := answer[client.SweepReport](to.GetSweepReport(cmd.Context(), args[0], &client.GetSweepReportParams{
					Cursor: some(cursor), Limit: some(limit),
				}))
				if cursor == "" {
					report = page
				}

				report.NextCursor = page.NextCursor

				return page.Trials, page.NextCursor, err
			})
			if err != nil {
				return err
			}

			report.Trials = trials

			return o.printReport(cmd.OutOrStdout(), report)
		})
	cmd.Flags().IntVar(&limit, "limit", reportTrials, "how many trials to list at most; 0 = all. The totals are of all")

	return o.completeSweep(cmd)
}

// printReport writes the tables that have rows, then the sentences.
func (o *options) printReport(w io.Writer, r client.SweepReport) error {
	if o.output != formatTable {
		return o.print(w, r, func() table { return reportTrialTable(r) })
	}

	if err := printTables(w, reportPlaceTable(r), reportTrialTable(r), reportLossTable(r)); err != nil {
		return err
	}

	if n := len(r.Trials); n > 0 && r.NextCursor != "" {
		say(w, "Trials up to %d are listed; --limit 0 lists all. What follows is of all.\n\n", r.Trials[n-1].Number)
	}

	for _, note := range r.Notes {
		say(w, "%s\n", note)
	}

	return nil
}

func reportPlaceTable(r client.SweepReport) table {
	t := table{header: []string{"where", "model", "memory", "default mode", "trials", "attempts", "at once", "most", "reserved, mean", "in use for", "had work"}}

	for _, p := range r.Places {
		reserved := none
		if p.UsedSeconds > 0 {
			reserved = bytesText(int64(p.ReservedByteSeconds / p.UsedSeconds))
		}

		t.add(where(p.DeviceID, p.Host), cmp.Or(p.Model, none), bytesText(p.MemoryBytes), bytesText(p.DefaultBytes), strconv.Itoa(p.Trials), strconv.Itoa(p.Attempts),
			fmt.Sprintf("%.1f", p.AtOnce), strconv.Itoa(p.MaxAtOnce), reserved, span(seconds(p.UsedSeconds)), fmt.Sprintf("%.0f %%", 100*p.BusyShare))
	}

	return t
}

// where names a GPU, or the cores of a host.
func where(device, host string) string {
	if device != "" {
		return device
	}

	return "cores of " + host
}

// reportTrialTable has a row for each attempt of the listed trials.
func reportTrialTable(r client.SweepReport) table {
	t := table{header: []string{"trial", "attempt", "stage", "ended", "where", "default mode", "reserved", "peak", "slack", "took"}}
	staged := false

	for _, trial := range r.Trials {
		for _, a := range trial.Attempts {
			slack := none
			if a.SlackPercent != nil {
				slack = fmt.Sprintf("%.0f %%", *a.SlackPercent)
			}

			peak := bytesText(a.PeakBytes)
			if a.PeakPartial && a.PeakBytes > 0 {
				peak = "at least " + peak
			}

			staged = staged || a.Stage != berth.StageMain

			t.add(strconv.Itoa(trial.Number), strconv.Itoa(a.Number), a.Stage, cmp.Or(a.FailureKind, "runs"), where(a.DeviceID, a.Host),
				bytesText(a.DefaultBytes), bytesText(a.ReservedBytes), peak, slack, tookText(seconds(a.Seconds)))
		}
	}

	if !staged {
		t.drop(slices.Index(t.header, "stage"), 1)
	}

	return t
}

// tookText is a time, where zero says that no container started.
func tookText(d time.Duration) string {
	if d == 0 {
		return none
	}

	return span(d)
}

func reportLossTable(r client.SweepReport) table {
	t := table{header: []string{"cause", "attempts", "repeated", "time lost"}}

	for _, l := range r.Losses {
		t.add(l.Cause, strconv.Itoa(l.Attempts), strconv.Itoa(l.Repeated), tookText(seconds(l.Seconds)))
	}

	return t
}
