package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
)

// streamEvents is GET /events.
func (s *Server) streamEvents(c *gin.Context) error {
	ctx := c.Request.Context()

	sweepIDs, err := s.watchedSweeps(ctx, c.QueryArray("sweep_id"))
	if err != nil {
		return err
	}

	done, err := s.openStream(ctx)
	if err != nil {
		return err
	}
	defer done()

	first, last, err := s.deps.Store.EventRange(ctx)
	if err != nil {
		return err
	}

	after, missed := last, false
	if id := cmp.Or(c.GetHeader("Last-Event-ID"), c.Query("after")); id != "" {
		after, err = strconv.ParseInt(id, 10, 64)
		missed = err != nil || after < first-1 || after > last // also when the database is another one
	}

	if missed {
		after = last
	}

	out, err := newStream(c.Writer, after)
	if err == nil && missed {
		err = out.event("reset", position(after), map[string]string{"reason": "events were missed that are not kept any more; read everything anew"})
	}

	if err == nil {
		err = s.sendEvents(c.Request, out, after, sweepIDs)
	}

	if err != nil {
		s.log.Debug("event stream ended", "request_id", requestID(ctx), "error", err)
	}

	return nil
}

// watchedSweeps completes the ids of sweeps. It leaves out a deleted one while
// there are others: its end must not end their stream. Errors: not_found, conflict.
func (s *Server) watchedSweeps(ctx context.Context, ids []string) ([]string, error) {
	var (
		watched []string
		gone    error
	)

	for _, id := range ids {
		sweep, err := s.sweep(ctx, id)

		switch {
		case berth.KindOf(err) == berth.KindNotFound:
			gone = err
		case err != nil:
			return nil, err
		default:
			watched = append(watched, sweep.ID)
		}
	}

	if len(watched) == 0 {
		return nil, gone
	}

	return watched, nil
}

// sendEvents writes the events after a sequence until the caller disconnects or
// the server stops; no sweeps means all. A token that becomes invalid ends the stream
// within two rechecks.
func (s *Server) sendEvents(r *http.Request, out *stream, after int64, sweepIDs []string) error {
	idle := time.NewTicker(s.idle)
	defer idle.Stop()

	recheck := time.NewTicker(s.recheck)
	defer recheck.Stop()

	checked := time.Now()

	for {
		if time.Since(checked) >= s.recheck { // the ticker may come a moment before
			checked = time.Now()

			if _, err := s.principal(r); err != nil {
				return err
			}
		}

		fresh, err := s.feed.after(r.Context(), after, sweepIDs)
		if err != nil {
			return err
		}

		for _, change := range fresh.events {
			event, err := toEvent(change)
			if err != nil {
				return err
			}

			if err := out.event("change", position(change.Sequence), event); err != nil {
				return err
			}
		}

		if after = fresh.seen; len(fresh.events) > 0 {
			continue // there may be more than a batch
		}

		select {
		case <-r.Context().Done():
			return nil
		case <-s.stopping:
			return nil
		case <-fresh.grown:
		case <-recheck.C:
		case <-idle.C:
			if err := out.sendAlive(after); err != nil {
				return err
			}
		}
	}
}

// recheckCaller is how long a stream outlives its token.
const recheckCaller = time.Minute
