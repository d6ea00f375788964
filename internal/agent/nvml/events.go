//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

const (
	// wanted are the events that Berth watches: XIDs and lost memory.
	wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError

	// turn is how long the library waits for an event at a time. Close waits that
	// long at most. The driver keeps events that come between two turns.
	turn = turnMillis * time.Millisecond

	turnMillis = 500
)

// WaitEvent returns the next event of any card.
func (d *driver) WaitEvent(ctx context.Context) (gpu.Event, error) {
	for {
		if ctx.Err() == nil {
			if event, ok := d.nextEvent(); ok {
				return event, nil
			}
		}

		// listen leaves its events in pending: no event is lost with a caller
		// that has gone.
		if _, err := ask(ctx, d.watch, d.config.patience()+turn, "waiting for events of GPUs", d.listen); err != nil {
			return gpu.Event{}, err
		}
	}
}

// nextEvent takes the oldest pending event.
func (d *driver) nextEvent() (gpu.Event, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if len(d.pending) == 0 {
		return gpu.Event{}, false
	}

	event := d.pending[0]
	d.pending = d.pending[1:]

	return event, true
}

// listen waits one turn.
func (d *driver) listen() (struct{}, error) {
	if d.set == nil {
		if err := d.subscribe(); err != nil {
			return struct{}{}, err
		}
	}

	var quiet bool

	data, err := call(d.lib, "waiting for events of GPUs", func() (nvml.EventData, nvml.Return) {
		data, code := d.set.Wait(turnMillis)
		if quiet = code == nvml.ERROR_TIMEOUT; quiet {
			code = nvml.SUCCESS
		}

		return data, code
	}, "nvmlEventSetWait_v2", "nvmlEventSetWait")
	if err != nil {
		// The next call watches again, without the GPU at fault.
		d.unwatch()
	}

	if err != nil || quiet {
		return struct{}{}, err
	}

	event := d.translate(data)

	d.mu.Lock()
	d.pending = append(d.pending, event)
	d.mu.Unlock()

	return struct{}{}, nil
}

// translate makes an event of the driver's. A card that cannot be named leaves
// the event without: then it may be any. An event of a MIG device is its card's: the
// errors that make one sick want a reset of the whole card.
func (d *driver) translate(data nvml.EventData) gpu.Event {
	event := gpu.Event{At: time.Now(), UncorrectedECC: data.EventType&nvml.EventTypeDoubleBitEccError != 0}

	if data.EventType&nvml.EventTypeXidCriticalError != 0 {
		event.XID = int(min(data.EventData, math.MaxInt32))
	}

	uuid, err := d.lib.uuid(data.Device, "the GPU of an event")
	if err != nil {
		// A lost card may not tell its name any more. The event says enough.
		return event
	}

	event.UUID = uuid

	return event
}

// subscribe asks for the events of all GPUs. If some cannot be watched it logs
// that once, and watches the others from then on. Errors: ErrUnsupported when no
// GPU reports events.
func (d *driver) subscribe() error {
	if !d.lib.hasAny("nvmlEventSetWait_v2", "nvmlEventSetWait") || !d.lib.hasAny("nvmlEventSetFree") {
		return berth.Errorf(berth.KindInvalid, "watching GPUs for errors: %w: the NVIDIA driver's library cannot wait for events: install a newer NVIDIA driver", gpu.ErrUnsupported)
	}

	count, err := d.lib.cards()
	if err != nil {
		return err
	}

	set, err := call(d.lib, "watching GPUs for errors", d.lib.api.EventSetCreate, "nvmlEventSetCreate")
	if err != nil {
		return err
	}

	d.set = set

	var (
		watched  int
		failures []error
	)

	for i := range count {
		err := d.watchCard(i)

		switch {
		case err == nil:
			watched++
		case berth.KindOf(err) == berth.KindInternal:
			// nvml.h: after an error that is not known the set may be broken.
			d.unwatch()

			return err
		default:
			failures = append(failures, err)
		}
	}

	if watched == 0 {
		d.unwatch()

		if len(failures) == 0 {
			return berth.Errorf(berth.KindNotFound, "watching GPUs for errors: the NVIDIA driver sees no GPU")
		}

		return errors.Join(failures...)
	}

	for i, err := range failures {
		if errors.Is(err, gpu.ErrUnsupported) { // by this GPU: the driver reports others' events
			failures[i] = berth.Errorf(berth.KindOf(err), "%s", err.Error())
		}
	}

	return errors.Join(failures...)
}

// watchCard adds a card to the set.
func (d *driver) watchCard(index int) error {
	handle, err := d.lib.card(index)
	if err != nil {
		return err
	}

	of := fmt.Sprintf("GPU %d", index)

	types, err := call(d.lib, "asking which errors are told by "+of, handle.GetSupportedEventTypes, "nvmlDeviceGetSupportedEventTypes")
	if err != nil {
		return err
	}

	if types&wanted == 0 {
		return berth.Errorf(berth.KindInvalid, "watching %s for errors: %w by this GPU", of, gpu.ErrUnsupported)
	}

	return d.lib.do(fmt.Sprintf("watching %s for errors", of),
		func() nvml.Return { return handle.RegisterEvents(types&wanted, d.set) }, "nvmlDeviceRegisterEvents")
}

// unwatch gives the set back. It is the last thing that the lane watch does.
func (d *driver) unwatch() {
	if d.set == nil {
		return
	}

	// The set ends with the library at the latest: nothing to do about a refusal.
	_ = d.lib.do("ending the watch of GPUs", d.set.Free, "nvmlEventSetFree")
	d.set = nil
}
