package runtrial

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// keepSource writes down which source was chosen, once, and before any of its metrics is
// stored, so that no curve has two.
func (o *output) keepSource() error {
	chosen := o.metrics.Chosen()
	if chosen == o.source || !o.auto() {
		return nil
	}

	if err := o.run.keep(func(k *record) { k.Source = chosen }); err != nil {
		return err
	}

	o.source = chosen

	return nil
}

// auto reports whether the sweep names no source.
func (o *output) auto() bool { return o.run.who.Spec.Metrics.Source == berth.MetricsAuto }

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
