package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// barSlots is how many running trials have a line of their own.
const barSlots = 12

// barWidth keeps the counts beside the bar on an 80 column terminal.
const barWidth = 34

// bars shows a sweep as a progress bar, with a line for each running trial.
type bars struct {
	progress *mpb.Progress
	total    *mpb.Bar
	slots    []*mpb.Bar
	now      func() time.Time

	mu    sync.Mutex // mpb draws on its own
	head  string
	lines []runningLine
}

func newBars(w io.Writer, now func() time.Time, options ...mpb.ContainerOption) *bars {
	b := &bars{now: now}
	b.progress = mpb.New(append([]mpb.ContainerOption{mpb.WithOutput(w)}, options...)...)
	b.total = b.progress.New(0, mpb.BarStyle(), mpb.BarWidth(barWidth),
		// mpb redraws from the column of the cursor, and a terminal moves that
		// by echoing ^C.
		mpb.PrependDecorators(decor.Name("\r")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			b.mu.Lock()
			defer b.mu.Unlock()

			return b.head
		})))

	return b
}

func (b *bars) show(s board) {
	b.mu.Lock()
	b.lines = runningLines(s, barSlots)
	b.head = countsText(s.sweep.Counts)
	needed := len(b.lines)

	if s.sweep.Best != nil {
		b.head += ", best " + number(s.sweep.Best.Value)
	}
	b.mu.Unlock()

	for len(b.slots) < needed {
		b.slots = append(b.slots, b.slot(len(b.slots)))
	}

	b.total.SetTotal(int64(max(s.sweep.Counts.Planned, s.sweep.Counts.Total, 1)), false)
	b.total.SetCurrent(int64(finished(s.sweep.Counts)))
}

func (b *bars) slot(i int) *mpb.Bar {
	return b.progress.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()

		if i >= len(b.lines) {
			return ""
		}

		return b.lines[i].text(b.now())
	})))
}

// close takes the lines of the trials away and leaves the bar.
func (b *bars) close() {
	for _, slot := range b.slots {
		slot.Abort(true)
	}

	b.total.Abort(false)
	b.progress.Wait()
}

// runningLine is the line of a running trial, the most telling part first, as a
// narrow terminal cuts off the rest.
type runningLine struct {
	name    string
	started *time.Time // nil = its container does not run yet
	about   string
}

func (l runningLine) text(now time.Time) string {
	took := ""
	if l.started != nil {
		took = span(max(now.Sub(*l.started), 0))
	}

	return fmt.Sprintf("  %-10s %7s  %s", l.name, took, l.about)
}

// runningLines is a line for each running trial, or one less and how many more
// there are.
func runningLines(s board, most int) []runningLine {
	newest, peaks := s.newest(), s.peaks()

	var lines []runningLine

	for _, trial := range s.trials {
		if trial.State != client.TrialStateRunning {
			continue
		}

		if len(lines) == most-1 && s.sweep.Counts.Running > most {
			return append(lines, runningLine{name: fmt.Sprintf("and %d more", s.sweep.Counts.Running-len(lines))})
		}

		a := newest[trial.Number]
		lines = append(lines, runningLine{
			name: fmt.Sprintf("trial %d", trial.Number), started: a.StartedAt,
			about: runningText(a, peaks[trial.ShapeKey]) + "  " + assignment(trial.Params),
		})
	}

	return lines
}

// runningText is such as probe, reserves 4,096 MiB, peak 21 MiB. The peak is
// the largest that was measured of the shape.
func runningText(a client.Attempt, peak int64) string {
	if a.Number == 0 {
		return "placed"
	}

	text := "reserves " + bytesText(a.Demand.MemoryBytes)
	if a.DeviceID != "" {
		text += " and " + bytesText(a.Demand.DeviceBytes) + " of a GPU"
	}

	if a.Purpose == string(berth.PurposeProbe) {
		text = "probe, " + text
	}

	if peak > 0 {
		text += ", shape's peak " + bytesText(peak)
	}

	if a.Number > 1 {
		text += fmt.Sprintf(", attempt %d", a.Number)
	}

	return text
}
