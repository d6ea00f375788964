package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	// refusalsLogged is the time between two lines in the log about callers
	// without a valid token: a flood of them does not become a flood of lines.
	refusalsLogged = time.Minute
	// refusedAddresses is how many addresses have their own count of tries;
	// about 2 MiB. Beyond that, all others share one count.
	refusedAddresses = 10_000
)

// refusals counts callers without a valid token. They leave nothing else: no
// row in the audit log, and one line a minute in the log.
type refusals struct {
	mu     sync.Mutex
	tries  limiters  // by address
	count  int       // since the last line
	logged time.Time // when that was
}

// refuse answers a caller without a valid token: unauthorized, or, after too
// many tries from its address, to wait. A valid token passes before this, so
// tries by others lock no address out.
func (s *Server) refuse(c *gin.Context, denied error, guess bool) error {
	from, limits, now := remoteIP(c.Request), s.config.Limits, time.Now()

	if count := s.refusals.countRefusal(now); count > 0 {
		s.log.Warn("refused callers without a valid token", "count", count, "last_address", from, "last_route", c.FullPath())
	}

	if !guess {
		return denied // people behind one address who have not logged in yet
	}

	delay := s.refusals.takeTry(from, now, limits)
	if delay == 0 {
		return denied
	}

	return &httpError{
		status: http.StatusTooManyRequests, code: codeTries, retryAfter: delay,
		detail: fmt.Sprintf("More than %v tries a second without a valid token, or %d at once, from this address; ask again after Retry-After, with a valid one.",
			limits.Refused, limits.RefusedBurst),
	}
}

// countRefusal counts a refusal. When a line is due it returns how many were refused
// since the last line.
func (r *refusals) countRefusal(now time.Time) (due int) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.count++

	if now.Sub(r.logged) < refusalsLogged {
		return 0
	}

	due, r.count, r.logged = r.count, 0, now

	return due
}

// takeTry counts a try of an address. For one too many, it returns how long to
// wait.
func (r *refusals) takeTry(address string, now time.Time, l Limits) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	key := network(address)
	if _, known := r.tries[key]; !known && len(r.tries) >= refusedAddresses {
		r.forgetOld(now, l)

		if len(r.tries) >= refusedAddresses {
			key = ""
		}
	}

	delay, _ := r.tries.take(key, now, l.Refused, l.RefusedBurst)

	return delay
}

// forgetOld drops the addresses whose last try is old enough that they count as
// new.
func (r *refusals) forgetOld(now time.Time, l Limits) {
	for key, limiter := range r.tries {
		if limiter.TokensAt(now) >= float64(l.RefusedBurst) {
			delete(r.tries, key)
		}
	}
}

// network is whose tries are counted together: an IPv4 address, or the /64 that
// one customer of an IPv6 provider has (RFC 6177).
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}

	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}

	return prefix.String()
}
