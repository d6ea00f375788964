package fault_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthml/berth"
)

// answer is the result of a run.
type answer struct {
	outcome berth.Outcome
	err     error
}

// run starts a run of an attempt in a worker.
func (w *world) run(p *worker, tr *trial, order berth.Order, stop, givenUp <-chan struct{}) <-chan answer {
	ended := make(chan answer, 1)
	ctx, end := context.WithCancelCause(p.ctx)

	tr.mu.Lock()
	known := tr.known[order.AttemptID]
	tr.mu.Unlock()

	if w.draw(2) == 0 {
		known = 0 // the heartbeats were lost
	}

	measured, since := int64(0), time.Now()

	order.Progress.Usage.MemoryPeakBytes = known
	order.Beat = func(b berth.Progress) {
		if b.Usage.MemoryPeakBytes < known {
			w.fail("I6: the measured peak of %s went back from %d to %d", order.AttemptID, known, b.Usage.MemoryPeakBytes)
		}

		select {
		case <-givenUp: // the server does not take it any more
		case <-p.Ended():
		default:
			tr.mu.Lock()
			defer tr.mu.Unlock()

			tr.known[order.AttemptID] = max(tr.known[order.AttemptID], b.Usage.MemoryPeakBytes)

			// A removed container's measurements are gone with it.
			if tr.container[order.AttemptID] != b.ContainerID {
				tr.container[order.AttemptID], tr.kept[order.AttemptID] = b.ContainerID, 0
			}

			if b.Usage.MemoryPeakBytes > measured {
				measured, since = b.Usage.MemoryPeakBytes, time.Now()
			}

			if time.Since(since) > keptWithin {
				tr.kept[order.AttemptID] = max(tr.kept[order.AttemptID], measured)
			}
		}
	}

	p.group.Go(func() {
		outcome, err := p.executor.Run(ctx, order)
		end(nil)

		ended <- answer{outcome, err}
	})
	p.group.Go(func() {
		select {
		case <-stop:
			end(berth.ErrStop)
		case <-givenUp: // it learns so by its next heartbeat
			time.Sleep(2 * time.Second)
			end(errGivenUp)
		case <-ctx.Done():
		}
	})

	return ended
}

// activity is Temporal's activity RunTrial: it is offered until it has a final
// answer. An error ends it.
func (w *world) activity(tr *trial, order berth.Order, stop, lost <-chan struct{}) (berth.Outcome, error) {
	for {
		p := w.running()
		givenUp := make(chan struct{})
		what := order.AttemptID

		if order.Stop {
			what += " (stop)"
		}

		w.note("%s is handed to the worker", what)

		if w.verdict(order.AttemptID) {
			w.count("verdict committed later")
		}

		ended := w.run(p, tr, order, stop, givenUp)

		select {
		case a := <-ended:
			w.note("%s: %s %v", what, a.outcome.Kind, a.err)

			switch {
			case a.err == nil && w.draw(20) == 0:
				w.note("%s: the worker's answer is lost", what)

				tr.mu.Lock()
				tr.told[order.AttemptID] = a.outcome // an answer was given, though it was lost
				tr.mu.Unlock()
			case a.err == nil, berth.KindOf(a.err) == berth.KindFenced:
				return a.outcome, a.err
			case isClosed(stop) && !order.Stop:
				return a.outcome, a.err // a canceled activity is not repeated
			}
		case <-p.Ended():
			w.note("%s: the worker is not heard of", what)
			time.Sleep(w.seconds(1, 60))
		case <-tr.again:
			w.note("%s: offered again", what)
			w.count("offered again")
			close(givenUp)

			continue
		case <-lost:
			w.count("lost")
			close(givenUp)

			return berth.Outcome{}, errGivenUp
		}

		if isClosed(lost) {
			return berth.Outcome{}, errGivenUp
		}

		time.Sleep(w.seconds(0, 3))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// insist repeats a required call: a step of a workflow.
func insist(do func(ctx context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := do(ctx)

		cancel()

		if err == nil {
			return
		}

		time.Sleep(time.Second)
	}
}

// place asks for a place until there is one, which may be an earlier attempt's
// that its host takes back; false = canceled before.
func (w *world) place(tr *trial, attemptID string, number int) (order berth.Order, placed bool) {
	request := berth.PlacementRequest{
		AttemptID: attemptID, TrialID: tr.id, Number: number, Stage: berth.StageMain, Purpose: berth.PurposeRun,
		Demand: berth.Demand{MemoryBytes: int64(1+w.draw(3)) * gib, CPUMilli: 1000},
	}

	for {
		var status berth.PlacementStatus

		insist(func(ctx context.Context) (err error) {
			status, err = w.ledger.RequestPlacement(ctx, request)

			return err
		})

		if status.State == berth.RequestPlaced {
			if status.AttemptID != attemptID {
				w.note("%s is revived instead of %s", status.AttemptID, attemptID)
				w.count("revived")
			}

			return berth.Order{AttemptID: status.AttemptID, Token: status.Token}, true
		}

		if isClosed(tr.canceled) {
			return order, false
		}

		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _ = w.ledger.Place(ctx, map[string]berth.Placement{attemptID: {HostID: host, Demand: request.Demand}}) // refused or lost: the status says

		cancel()
		time.Sleep(time.Second)
	}
}

// lead is the workflow of a trial.
func (w *world) lead(tr *trial) {
	const attempts = 6

	for number := 1; number <= attempts; number++ {
		id := fmt.Sprintf("%s-%d", tr.id, number)

		order, placed := w.place(tr, id, number)
		if !placed {
			w.end(tr, "canceled while it waited")

			return
		}

		id = order.AttemptID
		lost := make(chan struct{})

		tr.mu.Lock()
		tr.current, tr.lost = id, lost
		tr.mu.Unlock()

		if w.draw(6) == 0 { // it is lost while it starts
			soon := time.AfterFunc(w.seconds(0, 8), func() { tr.lose(id) })
			defer soon.Stop()
		}

		outcome, err := w.activity(tr, order, tr.canceled, lost)

		if err != nil && !errors.Is(err, errGivenUp) && berth.KindOf(err) != berth.KindFenced { // canceled: give the place back
			order.Stop = true
			outcome, err = w.activity(tr, order, nil, lost)
		}

		tr.mu.Lock()
		tr.current = ""
		tr.mu.Unlock()

		if err != nil {
			w.note("%s is abandoned", id)
			insist(func(ctx context.Context) error { return w.ledger.AbandonAttempt(ctx, id, "host lost") })

			if isClosed(tr.canceled) {
				w.end(tr, "canceled")

				return
			}

			continue
		}

		w.heard(tr, id, outcome)

		if outcome.Kind.Policy().Next != berth.NextRetry {
			w.end(tr, string(outcome.Kind))

			return
		}
	}

	w.end(tr, "too many attempts")
}

// heard checks an answer against the earlier ones, and keeps it.
func (w *world) heard(tr *trial, id string, outcome berth.Outcome) {
	tr.mu.Lock()
	before, said := tr.told[id]
	tr.told[id] = outcome
	tr.mu.Unlock()

	if said && !same(before, outcome) {
		w.fail("I3: %s was said to be %s, then %s", id, before.Kind, outcome.Kind)
	}
}

// lose takes the host of an attempt for lost, if the attempt is still the
// current one.
func (tr *trial) lose(attemptID string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()

	if attemptID != "" && tr.current == attemptID && !isClosed(tr.lost) {
		close(tr.lost)
	}
}

// end ends a trial, in the ledger too.
func (w *world) end(tr *trial, how string) {
	w.ledger.EndTrial(tr.id)
	tr.mu.Lock()
	defer tr.mu.Unlock()

	tr.ended = how
}
