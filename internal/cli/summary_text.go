package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/berthml/berth/api/client"
)

// failedShown is how many failed trials a summary names.
const failedShown = 5

func (o *options) printSummary(w io.Writer, s summary) error {
	if o.output != formatTable {
		return o.print(w, s, func() table { return summaryTable(s) })
	}

	say(w, "%s", summaryHead(s))

	if err := printTable(w, summaryTable(s)); err != nil {
		return err
	}

	_, err := fmt.Fprint(w, summaryFoot(s))

	return err
}

// summaryHead is the result: how it ended, and the best trial.
func summaryHead(s summary) string {
	c := s.Sweep.Counts
	text := fmt.Sprintf("\n%s (%s) %s: %s succeeded", s.Sweep.Name, short(s.Sweep.ID), s.Sweep.State, plural(c.Succeeded, "trial", "trials"))

	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Canceled, "canceled"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}

	text += "\n"

	if s.Sweep.Reason != "" {
		text += s.Sweep.Reason + "\n"
	}

	if s.Best != nil {
		text += fmt.Sprintf("best: trial %d, %s: %s\n", s.Best.Number, valueText(s.Sweep, *s.Best), assignment(s.Best.Params))
	}

	for i, t := range s.Failed {
		if i == failedShown {
			text += fmt.Sprintf("and %d more: berth sweep trials %s --state failed,infeasible\n", len(s.Failed)-failedShown, short(s.Sweep.ID))

			break
		}

		text += fmt.Sprintf("trial %d %s: %s\n", t.Number, t.State, oneLine(first(t.Message, t.FailureKind)))
	}

	return text + "\n"
}

// summaryTable is the number Berth is about: reserved against measured.
func summaryTable(s summary) table {
	t := table{header: []string{"shape", "values", "trials", "attempts", "probe peak", "reserved", "measured peak", "out of memory"}}

	for _, shape := range s.Shapes {
		reserved := mib(shape.ReservedMinBytes)
		if shape.ReservedMaxBytes > shape.ReservedMinBytes {
			reserved = fmt.Sprintf("%s - %s", mib(shape.ReservedMinBytes), mib(shape.ReservedMaxBytes))
		}

		t.add(shortKey(shape.Key), first(assignment(shape.Values), none), strconv.Itoa(shape.Trials), strconv.Itoa(shape.Attempts),
			mib(shape.ProbePeakBytes), reserved, mib(shape.MeasuredPeakBytes), strconv.Itoa(shape.OOMs))
	}

	return t
}

// summaryFoot is how well it was packed.
func summaryFoot(s summary) string {
	if s.WallSeconds == 0 {
		return "\nnothing ran\n"
	}

	oom := "nothing ran out of memory"
	if s.OOMRetries > 0 {
		oom = plural(s.OOMRetries, "attempt ran out of memory and was tried again with more", "attempts ran out of memory and were tried again with more")
	}

	return fmt.Sprintf("\n%s, %s of work in %s: %.1f at once (%d at most)\n%s\n",
		plural(countRun(s.Sweep.Counts), "trial", "trials"), span(seconds(s.WorkSeconds)), span(seconds(s.WallSeconds)),
		s.AtOnce, s.MaxAtOnce, oom)
}

// countRun is the trials that came to an end of their own.
func countRun(c client.Counts) int { return c.Succeeded + c.Failed + c.Infeasible }
