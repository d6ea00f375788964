package runtrial

import "github.com/berthml/berth"

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
