//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

const (
	// gap is the least time between two samples. nvml.h asks for more than 100 ms:
	// the driver refreshes its counters that often.
	gap = 110 * time.Millisecond

	// inUsePause is between two tries to sample a card that another program samples,
	// which takes it under a millisecond, and inUseFor how long the tries go on.
	inUsePause = 10 * time.Millisecond
	inUseFor   = time.Second

	// stale is the age at which a sample is no longer a beginning: an average over
	// longer says little about now. Callers ask every second.
	stale = 10 * time.Second
)

// metrics are the values computed from two samples, in the order of results.
var metrics = [...]uint32{
	uint32(nvml.GPM_METRIC_SM_UTIL), uint32(nvml.GPM_METRIC_ANY_TENSOR_UTIL), uint32(nvml.GPM_METRIC_DRAM_BW_UTIL),
}

// gauge measures one GPU: activity is the work between two samples.
type gauge struct {
	samples [2]nvml.GpmSample // the driver's buffers: the newest sample, and room for the next
	at      time.Time         // of the newest; zero = none
	last    gpu.Activity      // ended with the newest; To is zero without one
	blind   bool              // it was tried, and the card or the driver cannot sample
}

// Activity returns how busy a card was since the last measurement.
func (d *driver) Activity(ctx context.Context, uuid string) (gpu.Activity, error) {
	type result struct {
		activity gpu.Activity
		wait     time.Duration
	}

	doing := fmt.Sprintf("measuring the activity of GPU %q", uuid)
	giveUp := time.Now().Add(inUseFor)

	for {
		r, err := ask(ctx, d.calls, d.config.patience(), doing, func() (result, error) {
			activity, wait, err := d.measure(uuid)
			if errors.Is(err, errInUse) && time.Now().Before(giveUp) {
				return result{wait: inUsePause}, nil
			}

			return result{activity, wait}, err
		})
		if err != nil || r.wait == 0 {
			return r.activity, err
		}

		timer := time.NewTimer(r.wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()

			return gpu.Activity{}, fmt.Errorf("%s: %w", doing, context.Cause(ctx))
		}
	}
}

// measure returns the card's activity, or how long to wait before it asks again.
func (d *driver) measure(uuid string) (gpu.Activity, time.Duration, error) {
	handle, err := d.lib.handle(uuid)
	if err != nil {
		return gpu.Activity{}, 0, err
	}

	g := d.gauge(uuid)
	of := fmt.Sprintf("GPU %q", uuid)

	activity, wait, err := d.sample(handle, of, g)
	if err == nil || berth.KindOf(err) == berth.KindUnavailable { // lost, or busy: no word on whether it can be measured
		return activity, wait, err
	}

	d.freeSamples(g)
	g.blind = true

	return gpu.Activity{To: time.Now()}, 0, nil
}

// sample moves the gauge on: the newer sample is the beginning of the next
// measurement.
func (d *driver) sample(handle nvml.Device, of string, g *gauge) (gpu.Activity, time.Duration, error) {
	if g.blind {
		return gpu.Activity{}, 0, berth.Errorf(berth.KindInvalid, "measuring the activity of %s: %w", of, gpu.ErrUnsupported)
	}

	if age := time.Since(g.at); g.at.IsZero() || age > stale {
		return gpu.Activity{}, gap, d.begin(handle, of, g)
	} else if age < gap {
		if g.last.To.IsZero() {
			return gpu.Activity{}, gap - age, nil
		}

		return g.last, 0, nil
	}

	if err := d.take(handle, of, g.samples[1]); err != nil {
		return gpu.Activity{}, 0, err
	}

	now := time.Now()

	activity, err := d.lib.compare(of, g.samples[0], g.samples[1])
	if err != nil {
		return gpu.Activity{}, 0, err
	}

	activity.From, activity.To = g.at, now
	g.samples[0], g.samples[1] = g.samples[1], g.samples[0]
	g.at, g.last = now, activity

	return activity, 0, nil
}

// begin takes a first sample.
func (d *driver) begin(handle nvml.Device, of string, g *gauge) error {
	// All of GPM or none of it: allocated samples must be freed.
	for _, name := range []string{"nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree"} {
		if !d.lib.hasAny(name) {
			return berth.Errorf(berth.KindInvalid, "measuring the activity of %s: %w: the NVIDIA driver's library has no %s", of, gpu.ErrUnsupported, name)
		}
	}

	// The answer no counts. A yes must be tried: virtual GPUs say it and cannot. A
	// GPU that does not know is tried as well: a MIG device, or an older library.
	support, err := call(d.lib, "asking whether the activity can be measured of "+of, handle.GpmQueryDeviceSupport, "nvmlGpmQueryDeviceSupport")
	if err == nil && support.IsSupportedDevice == 0 {
		return berth.Errorf(berth.KindInvalid, "measuring the activity of %s: %w by this GPU", of, gpu.ErrUnsupported)
	}

	if errors.Is(err, gpu.ErrLost) {
		return err
	}

	for i := range g.samples {
		if g.samples[i] != nil {
			continue
		}

		sample, err := call(d.lib, "measuring the activity of "+of, d.lib.api.GpmSampleAlloc, "nvmlGpmSampleAlloc")
		if err != nil {
			return err
		}

		g.samples[i] = sample
	}

	if err := d.take(handle, of, g.samples[0]); err != nil {
		return err
	}

	g.at, g.last = time.Now(), gpu.Activity{}

	return nil
}

// take samples a card.
func (d *driver) take(handle nvml.Device, of string, sample nvml.GpmSample) error {
	return d.lib.do("sampling the activity of "+of, func() nvml.Return { return sample.Get(handle) }, "nvmlGpmSampleGet")
}

// compare computes the metrics of two samples. Each has its own return code; one that fails
// beside the SMs' is 0.
func (l *library) compare(of string, older, newer nvml.GpmSample) (gpu.Activity, error) {
	request := nvml.GpmMetricsGetType{NumMetrics: uint32(len(metrics)), Sample1: older, Sample2: newer}
	for i, id := range metrics {
		request.Metrics[i].MetricId = id
	}

	if err := l.do("measuring the activity of "+of, func() nvml.Return { return l.api.GpmMetricsGet(&request) }, "nvmlGpmMetricsGet"); err != nil {
		return gpu.Activity{}, err
	}

	code := nvml.Return(request.Metrics[0].NvmlReturn) //nolint:gosec // G115: codes are small
	if err := refusal(code, "measuring the activity of "+of); err != nil {
		return gpu.Activity{}, err
	}

	var shares [len(metrics)]float64

	for i := range shares {
		if m := request.Metrics[i]; m.NvmlReturn == uint32(nvml.SUCCESS) && m.Value > 0 { // not NaN
			shares[i] = min(m.Value/100, 1) // averages of counters are above it from time to time
		}
	}

	return gpu.Activity{SMActivity: shares[0], Tensor: shares[1], DRAMBandwidth: shares[2]}, nil
}

// gauge returns a card's gauge.
func (d *driver) gauge(uuid string) *gauge {
	if d.gauges[uuid] == nil {
		d.gauges[uuid] = &gauge{}
	}

	return d.gauges[uuid]
}

// freeSamples gives a gauge's buffers back.
func (d *driver) freeSamples(g *gauge) {
	for i, sample := range g.samples {
		if sample != nil {
			// The buffers are this process' own memory: nothing to do about a refusal.
			_ = d.lib.do("freeing a sample", sample.Free, "nvmlGpmSampleFree")
		}

		g.samples[i] = nil
	}

	g.at, g.last = time.Time{}, gpu.Activity{}
}
