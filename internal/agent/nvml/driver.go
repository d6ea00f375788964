//go:build cgo && linux

package nvml

import (
	"context"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth/internal/agent/gpu"
)

// driver is NVIDIA's driver as a gpu.Driver.
type driver struct {
	config Config

	// calls answers questions, watch waits for events: a wait must not hold up a
	// question.
	calls, watch *lane

	// lib is set by the lane calls when the library was started, before watch
	// is started. nil = it was not, and nothing may be called.
	lib *library

	gauges map[string]*gauge // by UUID; of the lane calls alone
	set    nvml.EventSet     // nil = not watching; of the lane watch alone

	mu      sync.Mutex
	pending []gpu.Event // received, and not yet taken by a caller
}

// Open loads NVIDIA's library and starts it.
// Errors: gpu.ErrNoDriver (not_found) when there is no library; unavailable when
// the driver is not loaded or does not answer; invalid for want of permission, or
// a library that cannot be used.
func Open(ctx context.Context, config Config) (gpu.Driver, error) {
	const doing = "starting NVIDIA's library"

	d := &driver{config: config, gauges: make(map[string]*gauge)}
	d.calls = start(d.shutdown)

	failure, err := ask(ctx, d.calls, d.config.startPatience(), doing, func() (failure, err error) {
		d.lib, failure = load(d.config.LibraryPath)

		return failure, nil
	})
	if err != nil {
		d.calls.stop()

		return nil, err
	}

	if failure != nil {
		d.calls.stop()
		<-d.calls.done // at once: there is nothing to shut down

		return nil, failure
	}

	d.watch = start(d.unwatch)

	return d, nil
}

// Close stops the lanes and shuts the library down. When the driver does not
// answer, Close gives up after the patience, and the library is shut down once it
// answers. Errors: unavailable.
func (d *driver) Close() error {
	d.watch.stop()
	d.calls.stop()

	timer := time.NewTimer(d.config.patience())
	defer timer.Stop()

	for _, l := range []*lane{d.watch, d.calls} {
		select {
		case <-l.done:
		case <-timer.C:
			return l.gaveUp(context.Background(), "closing NVIDIA's library")
		}
	}

	return nil
}

// shutdown is the last thing that the lane calls does. Nothing else may be in the
// library then.
func (d *driver) shutdown() {
	if d.lib == nil {
		return
	}

	if d.watch != nil {
		<-d.watch.done
	}

	for _, g := range d.gauges {
		d.freeSamples(g)
	}

	// A library that cannot be shut down stays: the process goes on.
	_ = d.lib.do("closing NVIDIA's library", d.lib.api.Shutdown, "nvmlShutdown")
}
