package runtrial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berthml/berth"
)

const (
	// resumePatience is how long an attempt waits at least for its checkpoint while the
	// store, or the host that is to store it, does not answer.
	resumePatience = 10 * time.Minute
	// resumeLongest is how long it waits at most: its place is needed.
	resumeLongest = time.Hour
	// resumeLook is how often it asks.
	resumeLook = 2 * time.Second
	// damagedTries is how often a checkpoint is fetched that is gone from the store, or
	// is not what it was.
	damagedTries = 3
)

// resumption is where the newest checkpoint of a trial is.
type resumption struct {
	here  *berth.EarlierCheckpoint // in the directory of this host; its Number is 0 when nobody knows the attempt
	fetch *berth.EarlierCheckpoint // in the store
	await *berth.EarlierCheckpoint // its host is about to store it
	lost  *berth.EarlierCheckpoint // out of reach, and newer than the others

	emptied bool // lost was in the directory of this host, which has no files any more
}

// resumptionOf finds the newest checkpoint. earlier is what is known of the attempts
// before, the newest first; local says that the directory of this host has files.
func resumptionOf(earlier []berth.EarlierCheckpoint, hostID string, local bool) (r resumption) {
	for n := range earlier {
		e := &earlier[n]
		ownHost := e.HostID == hostID

		switch {
		case !e.Ran:
			continue
		case ownHost && local:
			r.here = e

			return r
		case e.Coming && !ownHost && r.await == nil:
			r.await = e
		}

		switch {
		case e.Stored != nil:
			r.fetch = e

			return r
		case (e.Left && (!e.Coming || ownHost) || e.GivenUp) && r.lost == nil:
			r.lost, r.emptied = e, ownHost
		}
	}

	if local {
		r.here = &berth.EarlierCheckpoint{}
	}

	return r
}

// resumeWait is how long an attempt waits for its checkpoint: for as long as the work
// took that it would lose, which it then can as well do again.
func resumeWait(earlier []berth.EarlierCheckpoint) time.Duration {
	took := time.Duration(0)
	for _, e := range earlier {
		took += e.Took
	}

	return min(max(took, resumePatience), resumeLongest)
}

// resume has the newest checkpoint of the trial in the directory before the attempt's
// container is started, and notes which one that is. It changes nothing once the attempt
// was prepared: then its container may write to the directory. Errors: fenced;
// unavailable; ctx's cause.
func (r *run) resume(ctx context.Context) error {
	if r.short || r.who.Attempt.Number == 1 || r.who.Attempt.ContainerID != "" || r.dirs.prepared() {
		return nil
	}

	text, err := r.newestCheckpoint(ctx)
	if err != nil || text == "" {
		return err
	}

	r.log.Info("an attempt goes on", "attempt", r.who.Attempt.ID, "trial_id", r.who.Trial.ID, "from", text)

	err = r.records.NoteResumed(ctx, r.who.Attempt.ID, r.order.Token, text)
	if berth.KindOf(err) == berth.KindFenced {
		return err
	}

	if err != nil {
		r.log.Warn("noting from which checkpoint an attempt goes on", "attempt", r.who.Attempt.ID, "error", err)
	}

	return nil
}

// newestCheckpoint waits for the newest checkpoint and fetches it, and says in plain
// words which one the attempt has.
func (r *run) newestCheckpoint(ctx context.Context) (text string, err error) {
	earlier, err := r.records.EarlierCheckpoints(ctx, r.who.Attempt.ID)
	if err != nil || len(earlier) == 0 {
		return "", err
	}

	defer func(began time.Time) { r.waited = max(r.waited, time.Since(began)) }(time.Now())

	r.waiting.Store(r.who.Attempt.ID, r.order.Token)
	defer r.waiting.Delete(r.who.Attempt.ID)

	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	note := &waitNote{run: r, fenced: lose}
	defer func() { note.say(context.WithoutCancel(ctx), "") }()

	f := fetching{run: r, note: note, giveUp: time.Now().Add(resumeWait(earlier)), given: make(map[berth.Digest]string)}

	for {
		done, text, err := f.try(ctx, earlier)

		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil || done:
			return text, err
		}

		select {
		case <-time.After(resumeLook):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}

		again, err := r.records.EarlierCheckpoints(ctx, r.who.Attempt.ID)

		switch {
		case err == nil:
			earlier = again
		case berth.KindOf(err) == berth.KindUnavailable && time.Now().Before(f.giveUp): // what was known before still counts
			r.log.Warn("asking for checkpoints of earlier attempts", "attempt", r.who.Attempt.ID, "error", err)
		default:
			return "", err
		}
	}
}

// fetching is the wait of one attempt for its checkpoint.
type fetching struct {
	run     *run
	note    *waitNote
	giveUp  time.Time
	damaged int
	given   map[berth.Digest]string // checkpoints that are given up, and why
}

// try takes the newest checkpoint if it is within reach. Not done = try again later.
func (f *fetching) try(ctx context.Context, earlier []berth.EarlierCheckpoint) (done bool, text string, err error) {
	late := !time.Now().Before(f.giveUp)

	for n := range earlier {
		e := &earlier[n]
		if e.Coming && late {
			e.Coming, e.Problem = false, "its host had not stored it in time"
		}

		if e.Stored != nil && f.given[e.Stored.Digest] != "" {
			e.Left, e.Problem, e.Stored = true, f.given[e.Stored.Digest], nil
		}
	}

	found := resumptionOf(earlier, f.run.who.Attempt.HostID, f.run.dirs.hasCheckpoint())

	switch {
	case found.await != nil:
		f.note.say(ctx, fmt.Sprintf("waits until host %s has stored the checkpoint of attempt %d", found.await.Host, found.await.Number))

		return false, "", nil
	case found.fetch == nil:
		return true, found.text(), nil
	}

	why := f.fetch(ctx, *found.fetch)
	if why == nil {
		return true, found.text(), nil
	}

	switch kind := berth.KindOf(why); {
	case kind == berth.KindFenced:
		return false, "", why
	case kind == berth.KindNotFound, errors.Is(why, berth.ErrDamaged):
		f.damaged++
		late = late || f.damaged >= damagedTries
	case errors.Is(why, errNoStore):
		late = true
	case kind != berth.KindUnavailable: // the disk of this host does not take it; another host may
		return false, "", berth.Errorf(berth.KindUnavailable, "%w", why)
	}

	f.run.log.Warn("fetching a checkpoint", "attempt", f.run.who.Attempt.ID, "checkpoint", found.fetch.Stored.Digest, "error", why, "give_up", late)

	if late {
		f.given[found.fetch.Stored.Digest], f.damaged = why.Error(), 0
	} else {
		f.note.say(ctx, "waits for its checkpoint: "+why.Error())
	}

	return false, "", nil
}

// text says which checkpoint it is, or why there is none.
func (r resumption) text() (text string) {
	switch {
	case r.here != nil && r.here.Number > 0:
		text = fmt.Sprintf("from the checkpoint of attempt %d on this host, %s", r.here.Number, r.here.Host)
	case r.here != nil:
		text = "from a checkpoint on this host"
	case r.fetch != nil:
		text = fmt.Sprintf("from the checkpoint of attempt %d of host %s, stored at %s", r.fetch.Number, r.fetch.Host, r.fetch.Stored.StoredAt.Format(time.RFC3339))
		if r.fetch.Problem != "" {
			text += "; what it left is out of reach: " + r.fetch.Problem
		}
	}

	if r.lost == nil {
		return text
	}

	why := r.lost.Problem
	if why == "" {
		why = "it is on that host only, and not stored (--artifacts)"
	}

	lost := fmt.Sprintf("the checkpoint of attempt %d of host %s is out of reach: %s", r.lost.Number, r.lost.Host, why)

	switch {
	case r.emptied:
		lost = fmt.Sprintf("this host, %s, has no files of attempt %d any more", r.lost.Host, r.lost.Number)
	case r.lost.GivenUp:
		lost = fmt.Sprintf("no checkpoint of attempt %d was stored before its host %s was given up", r.lost.Number, r.lost.Host)
	}

	if text == "" {
		return "from nothing: " + lost
	}

	return text + "; " + lost
}

// resumedNote says that the value of an attempt that went on is of its own reports: it does
// not know where its curve joins those of the attempts before, since most programs name no steps.
func (r *run) resumedNote(strategy berth.Strategy) string {
	launch, found := r.dirs.launch(r.order.Token)
	if last := strategy == berth.StrategyLast || strategy == ""; last || !found || launch.Environment[resumeVariable] == "" {
		return ""
	}

	return fmt.Sprintf("it went on from a checkpoint, and `%s` counts only what this attempt reported; a final record can say it of all", strategy)
}
