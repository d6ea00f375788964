package main

import (
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/pflag"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/runtrial"
)

// bindBounds adds what an administrator may set of a worker's bounds; zero values
// are runtrial's defaults, as the bounds without a flag are.
func bindBounds(flags *pflag.FlagSet, b *runtrial.Bounds) {
	flags.Var((*size)(&b.LogLimit), "log-limit", "log kept per attempt; default 16MiB")
	flags.Var((*size)(&b.LogRate), "log-rate", "log a second at which an attempt is a flood, a short line counted as 1 KiB; default 5MiB")
	flags.Var((*size)(&b.OutputLimit), "output-limit", "files that an attempt may keep in /trial/out, /trial/checkpoint and its working directory, and that are stored of it; default 10GiB")
}

// leastOutputs is the smallest limit for files of attempts. One attempt may
// write 10 GiB by default, so anything below is taken for a slip.
const leastOutputs = 1 << 30

// keptSize is a size of at least leastOutputs above which results are deleted for
// good. A slip must not cost them, so it needs a unit.
type keptSize struct{ *size }

// Set is pflag.Value. Errors: invalid.
func (s keptSize) Set(text string) error {
	var read size
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

	*s.size = read

	return nil
}

// size is a flag that takes a number of bytes as people write it.
type size int64

// String is empty for the default.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}

	return units.BytesSize(float64(*s))
}

// Set is pflag.Value. Errors: invalid.
func (s *size) Set(text string) error {
	bytes, err := units.RAMInBytes(text)
	if err != nil || bytes <= 0 {
		return berth.Errorf(berth.KindInvalid, "%q is no size such as 16MiB", text)
	}

	*s = size(bytes)

	return nil
}

// Type is pflag.Value.
func (s *size) Type() string { return "size" }
