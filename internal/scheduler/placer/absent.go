package placer

import (
	"time"

	"github.com/berthml/berth"
)

// absences holds how long hosts have been lost, or had a problem, by id. The placer counts
// this itself: after an outage of the database all hosts seem to be lost, and the first to
// answer must not get the others' trials.
type absences struct {
	at    time.Time // of the last round
	spent map[string]time.Duration
}

// begin counts the time since the last round, and stores it in the hosts. Rounds without waiting
// requests, or without a readable queue, saw no hosts: after a longer gap it counts again from
// zero.
func (a *absences) begin(hosts []berth.Host, now time.Time) {
	gap := now.Sub(a.at)
	since := min(gap, longestRound)
	counted := make(map[string]time.Duration)

	for i := range hosts {
		h := &hosts[i]
		if h.State != berth.HostLost && h.State != berth.HostUnready {
			continue
		}

		if before, was := a.spent[h.ID]; was && gap < berth.HostLostAfter {
			counted[h.ID] = before + since
		} else {
			counted[h.ID] = 0
		}

		h.AbsentFor = counted[h.ID]
	}

	a.at, a.spent = now, counted
}
