package runtrial

import (
	"cmp"
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// Bounds are what one attempt may take of the host and of the database. Zero
// values are defaults. The reasons are in reliability.md, failures 28, 30, 34.
type Bounds struct {
	LogLimit    int64         // bytes of log kept; default 16 MiB
	LogEnd      int64         // bytes of its end that are kept beyond that; default 256 KiB
	LogRate     int64         // bytes of log a second, on average over LogFloodFor, a line at least chunkCost; default 5 MiB
	LogFloodFor time.Duration // an attempt that is faster for so long is stopped; default 30s
	OutputLimit int64         // bytes of files in /trial/out, /trial/checkpoint and the working directory; default 10 GiB
	MetricRate  int           // metric points kept a second; default 100, and 100 s' worth at once
	MetricLimit int           // metric points kept in all; default 1,000,000
}

func (b Bounds) orDefault() Bounds {
	return Bounds{
		LogLimit:    cmp.Or(b.LogLimit, 16<<20),
		LogEnd:      cmp.Or(b.LogEnd, 256<<10),
		LogRate:     cmp.Or(b.LogRate, 5<<20),
		LogFloodFor: cmp.Or(b.LogFloodFor, 30*time.Second),
		OutputLimit: cmp.Or(b.OutputLimit, 10<<30),
		MetricRate:  cmp.Or(b.MetricRate, 100),
		MetricLimit: cmp.Or(b.MetricLimit, 1_000_000),
	}
}

// excessGrace is what a job has between SIGTERM and SIGKILL that takes more
// than it may: each second is a gigabyte more.
const excessGrace = time.Second

// pruneGrace is what a job has that is stopped for being worse than others: Keras ends its fit
// between two batches, and nothing else of it is needed.
const pruneGrace = 5 * time.Second

// stopExcess stops a container that takes more than it may, or that early stopping ends.
func (r *run) stopExcess(ctx context.Context, why failure.Intent) error {
	r.log.Info("stopping an attempt", "attempt", r.who.Attempt.ID, "why", why)

	return r.end(ctx, why)
}

// settleExcess takes in what was found out at the exit, when nothing was left
// to stop. An attempt that ended before early stopping reached it ended by itself.
func (r *run) settleExcess(excess <-chan failure.Intent) {
	select {
	case why := <-excess:
		if !why.StopsEarly() {
			r.intent = cmp.Or(r.intent, why)
		}
	default:
	}
}

// emptyExcess removes the files of a job that wrote too many: hundreds of such
// trials would fill the disk for all. Only once the verdict, or what leads to it,
// is written down or committed: without the files nobody could come to it again.
// The checkpoints of one that kept to its limit, and filled a disk, stay: the disk
// may be shared.
func (r *run) emptyExcess(v verdict) {
	if v.Outcome.Kind != berth.FailureDiskQuota {
		return
	}

	if err := r.dirs.empty(v.Intent == failure.IntentQuota); err != nil {
		r.log.Warn("removing the files of an attempt", "attempt", r.who.Attempt.ID, "error", err)
	}
}

// makeRoom removes the files of a job that wrote too many when the disk that they
// fill takes no verdict: the database may need their room as well. The record of
// the disk is overwritten in place, which needs none. It takes what leads another
// run to the same verdict. makeRoom reports whether the files may go.
func (r *run) makeRoom(v verdict) bool {
	if v.Outcome.Kind != berth.FailureDiskQuota {
		return false
	}

	if err := r.keep(func(k *record) { k.Disk, k.Intent = r.disk, v.Intent }); err != nil {
		r.log.Warn("writing down why the files of an attempt go; they stay until its verdict is committed",
			"attempt", r.who.Attempt.ID, "error", err)

		return false
	}

	r.emptyExcess(v)

	return true
}
