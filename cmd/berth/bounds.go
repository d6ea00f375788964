package main

import (
	"github.com/spf13/pflag"

	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/config"
)

// bindBounds adds what an administrator may set of a worker's bounds; zero values
// are runtrial's defaults, as the bounds without a flag are.
func bindBounds(flags *pflag.FlagSet, b *runtrial.Bounds) {
	flags.Var((*config.Size)(&b.LogLimit), "log-limit", "log kept per attempt; default 16MiB")
	flags.Var((*config.Size)(&b.LogRate), "log-rate", "log a second at which an attempt is a flood, a short line counted as 1 KiB; default 5MiB")
	flags.Var((*config.Size)(&b.OutputLimit), "output-limit", "files that an attempt may keep in /trial/out, /trial/checkpoint and its working directory, and that are stored of it; default 10GiB")
}
