package cli

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

// barWidth is how many characters the whole of 1 has as a bar.
const barWidth = 40

func (o *options) insightCommand() *cobra.Command {
	return o.completeSweep(o.verb("insight SWEEP", "Show what a sweep tells: parameters that decide, best so far, early stopping", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			found, err := answer[client.SweepInsight](to.GetSweepInsight(cmd.Context(), args[0]))
			if err != nil {
				return err
			}

			return o.printInsight(cmd.OutOrStdout(), found)
		}))
}

// printInsight writes the tables that have rows, then the sentences.
func (o *options) printInsight(w io.Writer, found client.SweepInsight) error {
	if o.output != formatTable {
		return o.print(w, found, func() table { return importanceTable(found) })
	}

	if err := printTables(w, importanceTable(found), o.bestSoFarTable(found), frontTable(found), stopsTable(found), originsTable(found)); err != nil {
		return err
	}

	of := found.ImportanceOf

	switch {
	case of.Problem != "":
		say(w, "Importance: %s\n", of.Problem)
	case len(found.Importance) > 0:
		say(w, "Importance: how far values in the best %.0f %% of %s differ from values in all.\n", 100*of.TopShare, plural(of.Trials, "trial", "trials"))
	}

	if found.FromTrial > 1 {
		say(w, "All figures are of the newest %s, from trial %d on.\n", plural(found.Trials, "trial", "trials"), found.FromTrial)
	}

	return nil
}

func importanceTable(found client.SweepInsight) table {
	t := table{header: []string{"parameter", "trials", "share", "importance"}}

	for _, i := range found.Importance {
		share, bar := none, "too few trials"
		if i.Importance != nil {
			share, bar = fmt.Sprintf("%.0f %%", 100**i.Importance), strings.Repeat("#", int(math.Round(barWidth**i.Importance)))
		}

		t.add(i.Parameter, strconv.Itoa(i.Trials), share, bar)
	}

	return t
}

func (o *options) bestSoFarTable(found client.SweepInsight) table {
	t := table{header: []string{"best so far", "trial", "ended"}}

	for _, b := range found.Best {
		t.add(number(b.Value), strconv.Itoa(b.Trial), o.ago(b.At))
	}

	return t
}

// frontTable has the trials that no other one beats in all objectives.
func frontTable(found client.SweepInsight) table {
	if len(found.Front) == 0 {
		return table{}
	}

	names := slices.Sorted(maps.Keys(found.Front[0].Results))
	t := table{header: append([]string{"best trades"}, names...)}

	for _, f := range found.Front {
		t.add(append([]string{"trial " + strconv.Itoa(f.Trial)}, resultCells(f.Results, names)...)...)
	}

	return t
}

func stopsTable(found client.SweepInsight) table {
	t := table{header: []string{"judged at step", "trials", "stopped", "best", "best of the stopped"}}

	for _, r := range found.Rungs {
		step := strconv.FormatInt(r.Step, 10)
		if r.LastStep > r.Step {
			step += "-" + strconv.FormatInt(r.LastStep, 10)
		}

		t.add(step, strconv.Itoa(r.Trials), strconv.Itoa(r.Stopped), maybeNumber(r.Best), maybeNumber(r.Cut))
	}

	return t
}

func originsTable(found client.SweepInsight) table {
	t := table{header: []string{"values chosen by", "trials"}}

	for _, from := range found.Origins {
		t.add(from.By, strconv.Itoa(from.Trials))
	}

	return t
}
