package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// reasonsShown is how many reasons of failures a summary names.
const reasonsShown = 5

func (o *options) printSummary(w io.Writer, s summary) error {
	if o.output != formatTable {
		return o.print(w, s, func() table { return summaryTable(s) })
	}

	say(w, "%s", summaryHead(s))

	if err := printTable(w, summaryTable(s)); err != nil {
		return err
	}

	say(w, "\n%s\n%s", strings.Join(s.Notes, "\n"), nextStep(s))

	return nil
}

// summaryHead is the result: how it ended, and the best trial.
func summaryHead(s summary) string {
	c := s.Sweep.Counts
	ends := []string{plural(c.Succeeded, "trial", "trials") + " succeeded"}

	for _, part := range []struct {
		n    int
		what string
	}{{c.Pruned, "stopped early"}, {c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Canceled, "canceled"}} {
		if part.n > 0 {
			ends = append(ends, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}

	text := fmt.Sprintf("\n%s (%s) %s: %s\n", s.Sweep.Name, short(s.Sweep.ID), s.Sweep.State, strings.Join(ends, ", "))

	if s.Sweep.Reason != "" {
		text += s.Sweep.Reason + "\n"
	}

	if s.Best != nil {
		text += fmt.Sprintf("best: trial %d, %s: %s\n", s.Best.Number, valueText(s.Sweep, *s.Best), s.Best.Params.Text(" "))
	}

	return text + failuresText(s.Sweep.ID, s.Failures) + "\n"
}

// failuresText is why trials failed, a line for each reason.
func failuresText(sweepID string, reasons []client.FailureReason) string {
	var text strings.Builder

	for _, r := range reasons[:min(len(reasons), reasonsShown)] {
		which := "trial " + strconv.Itoa(r.First)
		if r.Trials > 1 {
			which = fmt.Sprintf("%s trials, first %d,", grouped(int64(r.Trials)), r.First)
		}

		fmt.Fprintf(&text, "%s %s: %s\n", which, r.State, oneLine(cmp.Or(r.Message, r.FailureKind)))
	}

	if len(reasons) > reasonsShown {
		fmt.Fprintf(&text, "more: berth sweep trials %s --state failed,infeasible\n", short(sweepID))
	}

	return text.String()
}

// summaryTable is the number Berth is about: reserved against measured.
func summaryTable(s summary) table {
	t := table{header: []string{"shape", "values", "trials", "attempts", "probe peak", "reserved", "measured peak", "oom"}}

	for _, shape := range s.Shapes {
		reserved := bytesText(shape.ReservedMinBytes)
		if shape.ReservedMaxBytes > shape.ReservedMinBytes {
			reserved = fmt.Sprintf("%s - %s", bytesText(shape.ReservedMinBytes), bytesText(shape.ReservedMaxBytes))
		}

		t.add(berth.ShortKey(shape.Key), cmp.Or(shape.Values.Text(" "), none), strconv.Itoa(shape.Trials), strconv.Itoa(shape.Attempts),
			probePeak(shape), reserved, bytesText(shape.MeasuredPeakBytes), strconv.Itoa(shape.OOMs))
	}

	return t
}

// probePeak is the probe's peak, in this sweep or before it.
func probePeak(s shapeSummary) string {
	if s.ProbePeakBytes == 0 && s.KnownPeakBytes > 0 {
		return bytesText(s.KnownPeakBytes) + " (known)"
	}

	return bytesText(s.ProbePeakBytes)
}

// nextStep is the command for the best trial's files; empty = none.
func nextStep(s summary) string {
	if s.Best == nil {
		return ""
	}

	return fmt.Sprintf("\nnext: berth sweep best %s --download   (the files of trial %d)\n", short(s.Sweep.ID), s.Best.Number)
}
