package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// Limits are the limits of callers. Zero values are defaults. A person is the
// name of a token; on a workstation without tokens all callers are one person.
type Limits struct {
	BodyBytes  int64   // of a request; default 1 MiB
	SpecBytes  int64   // of a sweep file; default and most 1 MiB (spec.MaxBytes)
	Streams    int     // event and log streams open at once, per person; default 50
	OpenSweeps int     // sweeps that have not ended, per person; default 1,000
	Rate       float64 // requests a second, per token; default 200
	Burst      int     // requests at once, per token; default: those of two seconds
	PageRows   int     // of a list; default and most 500 (openapi.yaml)
}

// maxPage is the largest page that the description allows.
const maxPage = 500

// Codes of limits that are reached; docs/errors.md explains them.
const (
	codeRate    = "E_RATE"
	codeStreams = "E_STREAMS"
	codeQuota   = "E_QUOTA"
)

// streamRetryAfter is when a person with too many streams may ask again: one
// of them may have ended by then.
const streamRetryAfter = 10 * time.Second

// orDefault fills in unset limits. Errors: invalid for an impossible rate.
func (l Limits) orDefault() (Limits, error) {
	if l.Rate < 0 {
		return l, berth.Errorf(berth.KindInvalid, "%v requests a second are less than none; give a --rate above 0", l.Rate)
	}

	l.Rate = cmp.Or(l.Rate, 200)

	return Limits{
		BodyBytes:  cmp.Or(l.BodyBytes, spec.MaxBytes),
		SpecBytes:  cmp.Or(l.SpecBytes, spec.MaxBytes),
		Streams:    cmp.Or(l.Streams, 50),
		OpenSweeps: cmp.Or(l.OpenSweeps, 1000),
		Rate:       l.Rate,
		Burst:      cmp.Or(l.Burst, max(int(2*l.Rate), 1)),
		PageRows:   cmp.Or(l.PageRows, maxPage),
	}, nil
}

// usage is the callers' current use.
type usage struct {
	mu      sync.Mutex
	streams map[string]int           // by person
	rates   map[string]*rate.Limiter // by token

	refused int       // callers without a valid token since the last line about them
	logged  time.Time // when that was
}

// throttle refuses a caller that asks too often. It stands behind authenticate,
// so that no caller uses up another's limit.
func (s *Server) throttle(c *gin.Context) error {
	limits := s.config.Limits

	delay := s.usage.takeRequest(caller(c.Request.Context()).token, limits)
	if delay == 0 {
		return nil
	}

	return &httpError{
		status: http.StatusTooManyRequests, code: codeRate, retryAfter: delay,
		detail: fmt.Sprintf("More than %v requests a second, or %d at once; ask again after Retry-After.", limits.Rate, limits.Burst),
	}
}

// takeRequest counts a request of a token. One too many is not counted, and the time is
// returned after which there is room.
func (u *usage) takeRequest(token string, l Limits) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()

	if u.rates[token] == nil {
		u.rates[token] = rate.NewLimiter(rate.Limit(l.Rate), l.Burst)
	}

	reservation := u.rates[token].Reserve()

	delay := reservation.Delay()
	if delay > 0 {
		reservation.Cancel()
	}

	return delay
}

// refusalsLogged is the time between two lines in the log about callers
// without a valid token: a flood of them does not become a flood of lines.
const refusalsLogged = time.Minute

// noteRefusal counts a caller without a valid token. It leaves nothing else: no row in the
// audit log, and one line a minute in the log.
func (s *Server) noteRefusal(c *gin.Context) {
	u := &s.usage

	u.mu.Lock()
	defer u.mu.Unlock()

	if u.refused++; time.Since(u.logged) > refusalsLogged {
		s.log.Warn("refused callers without a valid token", "count", u.refused, "last_address", remoteIP(c.Request), "last_route", c.FullPath())

		u.refused, u.logged = 0, time.Now()
	}
}

// openStream counts a stream of the caller; close gives its place back.
func (s *Server) openStream(ctx context.Context) (done func(), err error) {
	u, person, most := &s.usage, caller(ctx).name, s.config.Limits.Streams

	u.mu.Lock()
	defer u.mu.Unlock()

	if u.streams[person] >= most {
		return nil, &httpError{
			status: http.StatusTooManyRequests, code: codeStreams, retryAfter: streamRetryAfter,
			detail: fmt.Sprintf("You have %d streams open, which is the most; close one. "+
				"One stream of /api/v1/events shows all sweeps.", most),
		}
	}

	u.streams[person]++

	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()

		if u.streams[person]--; u.streams[person] == 0 {
			delete(u.streams, person)
		}
	}, nil
}

// checkQuota refuses one open sweep too many. Calls at the same moment may pass together.
func (s *Server) checkQuota(ctx context.Context) error {
	most, person := s.config.Limits.OpenSweeps, caller(ctx).name

	open, err := s.deps.Store.OpenSweeps(ctx, person)
	if err != nil || open < most {
		return err
	}

	return &httpError{
		status: http.StatusConflict, code: codeQuota,
		detail: fmt.Sprintf("You have %d sweeps that have not ended, which is the most; wait for one to end or cancel one.", open),
	}
}

// pageSize returns how many rows a list may have: the requested number, or the default,
// and at most the server's limit. Clients ask for the largest limit of any server,
// and follow next_cursor.
func (s *Server) pageSize(asked int) int {
	return min(cmp.Or(asked, defaultLimit), s.config.Limits.PageRows)
}
