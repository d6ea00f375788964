package runtrial

import (
	"context"
	"os"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/search/stopping"
)

// verdict returns the one that an earlier Run wrote down.
func (r *run) verdict() (verdict, bool) {
	v, found, err := r.dirs.verdict(r.order.Token)
	if err != nil {
		r.log.Warn("reading verdict; the container is judged anew", "attempt", r.who.Attempt.ID, "error", err)
	}

	return v, found
}

// settle writes a verdict down, if there is none yet, and commits the one that
// stands. A disk that takes no more loses nothing: the container stays.
func (r *run) settle(ctx context.Context, v verdict) (berth.Outcome, error) {
	if first, found := r.verdict(); found {
		return r.commit(ctx, first)
	}

	v.Outcome.Message = r.mask.Text(v.Outcome.Message)
	v.AttemptID, v.Token, v.Source = r.who.Attempt.ID, r.order.Token, r.source(v.Outcome.Usage)
	v.Intent = r.intent

	err := r.dirs.keepVerdict(v)
	if err != nil && r.makeRoom(v) {
		err = r.dirs.keepVerdict(v)
	}

	if err != nil {
		r.log.Warn("writing verdict down; it is committed from memory", "attempt", v.AttemptID, "error", err)

		v.unwritten = true
	} else if err := r.dirs.dropSecrets(); err != nil { // else its log may have to be read again
		r.log.Warn("removing secrets; they go with the attempt's other files", "attempt", v.AttemptID, "error", err)
	}

	return r.commit(ctx, v)
}

// commit stores a verdict and then removes the container and the file. Once
// the container has exited nothing must cut this short, so it has a deadline
// of its own; what is left when that is over, the next Run commits.
func (r *run) commit(ctx context.Context, v verdict) (berth.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()

	if !v.unwritten {
		r.emptyExcess(v)
	}

	if err := r.dirs.gather(); err != nil {
		r.log.Warn("the files stay in the working directory until the attempt's directory is tidied", "attempt", r.who.Attempt.ID, "error", err)
	}

	err := patiently(ctx, func() error { return r.store(ctx, &v) })
	if berth.KindOf(err) == berth.KindFenced {
		r.abandon()
	}

	if err != nil {
		return berth.Outcome{}, err
	}

	if v.unwritten {
		r.emptyExcess(v)
	}

	if r.shares(v.Outcome) { // nothing goes on from its checkpoint
		if err := os.RemoveAll(r.dirs.checkpoint); err != nil {
			r.log.Warn("removing the checkpoint of a stage", "attempt", r.who.Attempt.ID, "error", err)
		}
	}

	r.tidy(ctx, r.who)

	return v.Outcome, nil
}

// store writes what the database lacks of a verdict: its result last, for then
// the attempt is over.
func (r *run) store(ctx context.Context, v *verdict) error {
	if err := r.storePending(ctx, &v.pending); err != nil {
		return err
	}

	launch, _ := r.dirs.launch(r.order.Token) // none when it never was to start

	shared := ""
	if r.shares(v.Outcome) {
		shared = r.who.StageKey
	}

	return r.records.FinishAttempt(ctx, berth.Result{
		StageKey: shared, Stage: r.who.Attempt.Stage,
		Datasets:  r.unchanged(launch.Datasets),
		AttemptID: r.who.Attempt.ID, TrialID: r.who.Trial.ID, SweepID: r.who.SweepID, ShapeKey: r.who.Attempt.ShapeKey,
		Token: r.order.Token, Reserved: r.who.Attempt.Demand, Outcome: v.Outcome, Source: v.Source,
		Proof: "container exited or never started", ContainerID: v.ContainerID, ImageMissing: v.ImageMissing, InputMissing: v.InputMissing,
		Checkpoint: v.ContainerID != "" && !r.short && shared == "" && r.dirs.hasCheckpoint(),
	})
}

// unchanged returns the versions of an attempt's data sets, empty for those that are
// not the same any more: it may have read either.
func (r *run) unchanged(began map[string]string) map[string]string {
	if began == nil {
		return nil
	}

	same := make(map[string]string, len(began))

	for name, version := range began {
		same[name] = ""

		if now, found := r.datasetVersion(name); found && now == version {
			same[name] = version
		}
	}

	return same
}

// pending is what the database lacks of an attempt.
type pending struct {
	metrics.Batch

	Pieces []berth.LogPiece    `json:"pieces,omitempty"` // of the log
	Memory []berth.MemoryPoint `json:"memory,omitempty"` // what it held over time
	Rungs  []berth.RungReport  `json:"rungs,omitempty"`  // that early stopping did not judge
}

// storePending takes out of what is pending what it has stored, or what can never be
// stored: the result counts more. Errors: unavailable; fenced.
func (r *run) storePending(ctx context.Context, p *pending) error {
	attempt, token := r.who.Attempt.ID, r.order.Token

	if len(p.Memory) > 0 {
		if err := r.storable(r.records.PutMemory(ctx, attempt, token, p.Memory)); err != nil {
			return err
		}

		p.Memory = nil
	}

	if len(p.Drop) > 0 {
		if err := r.storable(r.records.DropMetrics(ctx, attempt, token, p.Drop)); err != nil {
			return err
		}

		p.Drop = nil
	}

	for len(p.Points) > 0 {
		some := p.Points[:min(len(p.Points), pointsAtOnce)]
		if err := r.storable(r.records.PutMetrics(ctx, attempt, token, some)); err != nil {
			return err
		}

		p.Points = p.Points[len(some):]
	}

	for ; len(p.Rungs) > 0; p.Rungs = p.Rungs[1:] {
		_, err := r.judgeRung(ctx, p.Rungs[0], stopping.New(*r.who.Spec.EarlyStop, *r.who.Spec.Objective))
		if err := r.storable(err); err != nil {
			return err
		}
	}

	for len(p.Pieces) > 0 {
		piece := p.Pieces[0]

		// An earlier try may have stored it; a mark of ours counts in no offset.
		if piece.Stream == streamBerth || piece.Offset+int64(len(piece.Data)) > r.who.LogOffset {
			if err := r.storable(r.records.PutLog(ctx, attempt, token, piece)); err != nil {
				return err
			}
		}

		p.Pieces = p.Pieces[1:]
	}

	return nil
}

// storable passes on the errors that may pass, and that the attempt is not ours
// any more. It logs the others.
func (r *run) storable(err error) error {
	switch berth.KindOf(err) {
	case berth.KindUnavailable, berth.KindFenced:
		return err
	default:
	}

	if err == nil {
		return nil
	}

	r.log.Error("the database refuses metrics, log or memory", "attempt", r.who.Attempt.ID, "error", err)

	return nil
}

// patiently repeats what failed because something did not answer, until ctx ends.
func patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		if berth.KindOf(err) != berth.KindUnavailable {
			return err
		}

		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return err
		}
	}
}
