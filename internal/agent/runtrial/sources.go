package runtrial

import (
	"context"
	"path/filepath"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// sourceName is the file that keeps where an attempt's metrics come from.
const sourceName = "source.json"

// chosenSource is the source of a container's metrics. It is written before any of them is
// stored, so that no curve has two.
type chosenSource struct {
	Container string `json:"container"` // its id
	Source    string `json:"source"`
}

// keepSource writes down which source was chosen, once.
func (o *output) keepSource() error {
	chosen := o.metrics.Chosen()
	if chosen == o.source || !o.auto() {
		return nil
	}

	if err := writeJSON(filepath.Join(o.run.dirs.attempt, sourceName), "where metrics come from", chosenSource{o.run.container.ID, chosen}); err != nil {
		return err
	}

	o.source = chosen

	return nil
}

// auto reports whether the sweep names no source.
func (o *output) auto() bool { return o.run.who.Spec.Metrics.Source == berth.MetricsAuto }

// source is what was chosen for this container; empty when nothing was.
func (d dirs) source(container string) string {
	var c chosenSource

	if !readJSON(filepath.Join(d.attempt, sourceName), &c) || container == "" || c.Container != container {
		return ""
	}

	return c.Source
}

// fromLog reports whether what the job printed may be what its trial is ranked by.
func (o *output) fromLog() bool {
	if o.printed == nil {
		return false
	}

	source := ""
	if needed := o.metrics.Needed(); needed != "" {
		source = o.metrics.Source(needed)
	}

	return source == "" || source == berth.MetricsStdout
}

// storeMetrics writes down where metrics come from, then stores them.
func (o *output) storeMetrics(ctx context.Context, b *metrics.Batch) error {
	if err := o.keepSource(); err != nil {
		return err
	}

	return o.run.putMetrics(ctx, b, func(err error) error { return err })
}

// putMetrics stores a batch, and takes out of it what it has stored. It ends with the errors
// that pass lets through.
func (r *run) putMetrics(ctx context.Context, b *metrics.Batch, pass func(error) error) error {
	attempt, token := r.who.Attempt.ID, r.order.Token

	if len(b.Drop) > 0 {
		if err := pass(r.records.DropMetrics(ctx, attempt, token, b.Drop)); err != nil {
			return err
		}

		b.Drop = nil
	}

	for len(b.Points) > 0 {
		some := b.Points[:min(len(b.Points), pointsAtOnce)]
		if err := pass(r.records.PutMetrics(ctx, attempt, token, some)); err != nil {
			return err
		}

		b.Points = b.Points[len(some):]
	}

	return nil
}
