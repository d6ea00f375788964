package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthml/berth"
)

const day = 24 * time.Hour

// bindRetention adds what an administrator may set of how long things are kept.
func bindRetention(flags *pflag.FlagSet, k *berth.Retention) {
	*k = berth.Retention{Audit: 365 * day, Events: day, AuditRows: 1_000_000, EventRows: 5_000_000}

	flags.Var((*age)(&k.Sweeps), "keep-sweeps", "how long after its end a sweep is kept with all that belongs to it; default: for ever")
	flags.Var((*age)(&k.Outputs), "keep-outputs", "how long after the end of its sweep a trial's files are kept; default: as long as the sweep")
	flags.Var((*age)(&k.Logs), "keep-logs", "the same for logs")
	flags.Var((*age)(&k.Metrics), "keep-metrics", "the same for metric points and what attempts held over time; each trial keeps its result")
	flags.Var((*age)(&k.Audit), "keep-audit", "how long entries of the audit log are kept")
	flags.Var((*age)(&k.Events), "keep-events", "how long a watcher may be away and miss no event")
	flags.Var(keptSize{&k.LogBytes, leastLogs}, "keep-log-bytes", "most log of all ended sweeps, such as 20GiB, at least 16MiB: the newest that fit are kept; default: without limit")
	flags.Var(keptCount{&k.MetricPoints, leastPoints}, "keep-metric-points", "most metric points of all ended sweeps, at least 1000000: the newest that fit are kept; 0 = without limit")
	flags.Var(keptCount{&k.AuditRows, leastRows}, "keep-audit-rows", "most entries of the audit log, at least 10000; 0 = without limit")
	flags.Var(keptCount{&k.EventRows, leastRows}, "keep-event-rows", "most events, at least 10000; 0 = without limit")
}

// leastAge is the shortest time for which anything is kept. What is shorter is
// taken for a slip, such as 3m for three months.
const leastAge = time.Hour

// age is a flag that takes a time as people write it: 90d, 12h; 0 = for ever.
type age time.Duration

// String is empty for ever.
func (a *age) String() string {
	switch d := time.Duration(*a); {
	case d == 0:
		return ""
	case d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	default:
		return d.String()
	}
}

// Set is pflag.Value. Errors: invalid.
func (a *age) Set(text string) error {
	var (
		d   time.Duration
		err error
	)

	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64

		n, err = strconv.ParseUint(days, 10, 16) // more would overflow
		d = time.Duration(n) * day
	} else if text != "0" {
		d, err = time.ParseDuration(text)
	}

	if err != nil || d < 0 || d > 100*365*day {
		return berth.Errorf(berth.KindInvalid, "%q is no time such as 90d or 12h", text)
	}

	if d > 0 && d < leastAge {
		return berth.Errorf(berth.KindInvalid, "%q is %s, too short a time before results are deleted for good: write days, such as 90d, or at least 1h", text, d)
	}

	*a = age(d)

	return nil
}

// Type is pflag.Value.
func (a *age) Type() string { return "time" }
