package runtrial

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
)

// sourceName is the file that keeps where an attempt's metrics come from.
const sourceName = "source.json"

// sourcesOf are the sources of a sweep's metrics, the first before the others: the metrics
// file, the shim, and what the job prints; or the one that the sweep names before the shim.
func sourcesOf(spec berth.Spec) (sources []string) {
	switch source := spec.Metrics.Source; source {
	case berth.MetricsStdout, berth.MetricsTensorBoard:
		sources = []string{source}
	default:
		sources = []string{berth.MetricsFile}
	}

	if spec.WantsShim() {
		sources = append(sources, berth.MetricsShim)
	}

	if spec.Metrics.Source == berth.MetricsAuto {
		sources = append(sources, berth.MetricsStdout)
	}

	return sources
}

// chosenSource is the source of a container's metrics. It is written before any of them is
// stored, so that no curve has two.
type chosenSource struct {
	Container string `json:"container"` // its id
	Source    string `json:"source"`
}

// keepSource writes down which source was chosen, once.
func (o *output) keepSource() error {
	o.metrics.mu.Lock()
	chosen := o.metrics.chosen
	o.metrics.mu.Unlock()

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

	data, err := os.ReadFile(filepath.Join(d.attempt, sourceName))
	if err != nil || json.Unmarshal(data, &c) != nil || container == "" || c.Container != container {
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
	if o.metrics.needed != "" {
		source = o.metrics.source(o.metrics.needed)
	}

	return source == "" || source == berth.MetricsStdout
}

// storeMetrics writes down where metrics come from, then stores them.
func (o *output) storeMetrics(ctx context.Context, b *batch) error {
	if err := o.keepSource(); err != nil {
		return err
	}

	return o.run.putMetrics(ctx, b)
}
