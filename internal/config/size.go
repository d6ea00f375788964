package config

import (
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/berthml/berth"
)

// leastOutputs is the smallest limit for files of attempts. One attempt may
// write 10 GiB by default, so anything below is taken for a slip.
const leastOutputs = 1 << 30

// KeptSize is a size of at least leastOutputs above which results are deleted for
// good. A slip must not cost them, so it needs a unit.
type KeptSize struct{ *Size }

// Set is pflag.Value. Errors: invalid.
func (s KeptSize) Set(text string) error {
	var read Size
	if text = strings.TrimSpace(text); text != "" && strings.Trim(text, "0123456789.") == "" {
		return berth.Errorf(berth.KindInvalid, "%q needs a unit, as it deletes results for good: write %[1]sGiB for instance", text)
	}

	if err := read.Set(text); err != nil {
		return err
	}

	if read < leastOutputs {
		return berth.Errorf(berth.KindInvalid, "%q is too small for a limit that deletes results for good: give at least %s",
			text, berth.BytesText(leastOutputs))
	}

	*s.Size = read

	return nil
}

// Size is a flag that takes a number of bytes as people write it.
type Size int64

// String is empty for the default.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}

	return units.BytesSize(float64(*s))
}

// Set is pflag.Value. Errors: invalid.
func (s *Size) Set(text string) error {
	bytes, err := units.RAMInBytes(text)
	if err != nil || bytes <= 0 {
		return berth.Errorf(berth.KindInvalid, "%q is no size such as 16MiB", text)
	}

	*s = Size(bytes)

	return nil
}

// Type is pflag.Value.
func (s *Size) Type() string { return "size" }

const day = 24 * time.Hour

// leastAge is the shortest time for which anything is kept. What is shorter is
// taken for a slip, such as 3m for three months.
const leastAge = time.Hour

// Age is a flag that takes a time as people write it: 90d, 12h; 0 = for ever.
type Age time.Duration

// String is empty for ever.
func (a *Age) String() string {
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
func (a *Age) Set(text string) error {
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

	*a = Age(d)

	return nil
}

// Type is pflag.Value.
func (a *Age) Type() string { return "time" }
