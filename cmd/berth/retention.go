package main

import (
	"github.com/spf13/pflag"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/config"
)

// bindRetention adds how long the server keeps results; how much a host keeps is the worker's.
func bindRetention(flags *pflag.FlagSet, k *berth.Retention) {
	flags.Var((*config.Age)(&k.Sweeps), "keep-sweeps", "how long after its end a sweep is kept with its trials, metrics, logs and files; default: for ever")
	flags.Var((*config.Age)(&k.Outputs), "keep-outputs", "how long after the end of its sweep a trial's files are kept; default: as long as the sweep")
}
