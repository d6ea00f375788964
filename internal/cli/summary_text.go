package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// failedShown is how many reasons, and how many trials of each, a summary names.
const failedShown = 5

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
	}{{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Canceled, "canceled"}} {
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

	return text + failedText(s) + "\n"
}

// failedText names why trials failed, once each.
func failedText(s summary) string {
	var (
		lines  []string
		whys   []string
		trials = make(map[string][]string)
	)

	for _, t := range s.Failed {
		why := fmt.Sprintf("%s: %s\n", t.State, oneLine(cmp.Or(t.Message, t.FailureKind)))
		if trials[why] == nil {
			whys = append(whys, why)
		}

		trials[why] = append(trials[why], strconv.Itoa(t.Number))
	}

	for _, why := range whys[:min(len(whys), failedShown)] {
		lines = append(lines, trialNames(trials[why])+" "+why)
	}

	if len(s.Failed) > failedShown {
		lines = append(lines, fmt.Sprintf("more: berth sweep trials %s --state failed,infeasible\n", short(s.Sweep.ID)))
	}

	return strings.Join(lines, "")
}

func trialNames(numbers []string) string {
	switch n := len(numbers); {
	case n == 1:
		return "trial " + numbers[0]
	case n > failedShown:
		return fmt.Sprintf("trials %s and %d more", strings.Join(numbers[:failedShown], ", "), n-failedShown)
	default:
		return "trials " + strings.Join(numbers, ", ")
	}
}

// summaryTable is the number Berth is about: reserved against measured.
func summaryTable(s summary) table {
	t := table{header: []string{"shape", "values", "trials", "attempts", "probe peak", "reserved", "measured peak", "oom"}}

	for _, shape := range s.Shapes {
		reserved := bytesText(shape.ReservedMinBytes)
		if shape.ReservedMaxBytes > shape.ReservedMinBytes {
			reserved = fmt.Sprintf("%s - %s", bytesText(shape.ReservedMinBytes), bytesText(shape.ReservedMaxBytes))
		}

		t.add(shortKey(shape.Key), cmp.Or(shape.Values.Text(" "), none), strconv.Itoa(shape.Trials), strconv.Itoa(shape.Attempts),
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
