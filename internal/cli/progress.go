package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

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
	texts []string
}

func newBars(w io.Writer, now func() time.Time, options ...mpb.ContainerOption) *bars {
	b := &bars{now: now, texts: make([]string, barSlots)}
	b.progress = mpb.New(append([]mpb.ContainerOption{mpb.WithOutput(w)}, options...)...)
	b.total = b.progress.New(0, mpb.BarStyle(), mpb.BarWidth(barWidth), mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()

		return b.head
	})))

	return b
}

func (b *bars) show(s board) {
	texts := runningTexts(s, b.now(), barSlots)

	b.mu.Lock()
	b.head = countsText(s.sweep.Counts)

	if s.sweep.Best != nil {
		b.head += ", best " + number(s.sweep.Best.Value)
	}

	for i := range b.texts {
		b.texts[i] = ""
		if i < len(texts) {
			b.texts[i] = texts[i]
		}
	}
	b.mu.Unlock()

	for len(b.slots) < len(texts) {
		b.slots = append(b.slots, b.slot(len(b.slots)))
	}

	b.total.SetTotal(int64(max(s.sweep.Counts.Planned, s.sweep.Counts.Total, 1)), false)
	b.total.SetCurrent(int64(finished(s.sweep.Counts)))
}

func (b *bars) slot(i int) *mpb.Bar {
	return b.progress.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()

		return b.texts[i]
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

// runningTexts is a line for each running trial: its attempt, what is reserved,
// and what its shape was measured to need.
func runningTexts(s board, now time.Time, most int) []string {
	newest, peaks := s.newest(), s.peaks()

	var texts []string

	for _, trial := range s.trials {
		if trial.State != client.TrialStateRunning {
			continue
		}

		if len(texts) == most-1 && s.sweep.Counts.Running > most {
			return append(texts, fmt.Sprintf("  and %d more", s.sweep.Counts.Running-len(texts)))
		}

		a := newest[trial.Number]
		text := fmt.Sprintf("  trial %-4d %s", trial.Number, attemptText(a))

		if peak := peaks[trial.ShapeKey]; peak > 0 {
			text += ", shape's peak " + mib(peak)
		}

		if a.StartedAt != nil {
			text += ", " + span(max(now.Sub(*a.StartedAt), 0))
		}

		texts = append(texts, text+"  "+assignment(trial.Params))
	}

	return texts
}
