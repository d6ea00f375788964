package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berthml/berth"
)

const day = 24 * time.Hour

// bindRetention adds how long the server keeps results; how much a host keeps is the worker's.
func bindRetention(flags *pflag.FlagSet, k *berth.Retention) {
	flags.Var((*age)(&k.Sweeps), "keep-sweeps", "how long after its end a sweep is kept with its trials, metrics, logs and files; default: for ever")
	flags.Var((*age)(&k.Outputs), "keep-outputs", "how long after the end of its sweep a trial's files are kept; default: as long as the sweep")
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
