package fake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// What a host's Docker says of containers.

// Inspect returns the container with this id or name. Errors: not_found.
func (d *Docker) Inspect(ctx context.Context, id string) (berth.Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if err := away(ctx, "inspecting container %q", id); err != nil {
		return berth.Container{}, err
	}

	b, err := d.find(id)
	if err != nil {
		return berth.Container{}, err
	}

	return b.Container, nil
}

// List returns all containers by name, as Docker's list does: identities and
// states.
func (d *Docker) List(ctx context.Context) ([]berth.Container, error) {
	return d.hooked().List.call(ctx, struct{}{}, func(ctx context.Context) (list []berth.Container, err error) {
		err = d.Faults.call(ctx, "List", "", func() (err error) {
			list, err = d.list(ctx)

			return err
		}, nil)

		return list, err
	})
}

func (d *Docker) list(ctx context.Context) ([]berth.Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if err := away(ctx, "listing containers"); err != nil {
		return nil, err
	}

	list := make([]berth.Container, 0, len(d.box))

	for _, b := range d.box {
		c := b.Container
		c.PID, c.StartedAt, c.FinishedAt, c.ExitCode = 0, time.Time{}, time.Time{}, 0
		list = append(list, c)
	}

	slices.SortFunc(list, func(a, b berth.Container) int { return cmp.Compare(a.Name, b.Name) })

	return list, nil
}

// Wait returns when the container has exited. Errors: not_found, also when it
// is removed in the meantime; the context's cause.
func (d *Docker) Wait(ctx context.Context, id string) (berth.Container, error) {
	return d.hooked().Wait.call(ctx, id, func(ctx context.Context) (c berth.Container, err error) {
		err = d.Faults.call(ctx, "Wait", id, func() (err error) {
			c, err = d.wait(ctx, id)

			return err
		}, nil)

		return c, err
	})
}

func (d *Docker) wait(ctx context.Context, id string) (berth.Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	b, err := d.find(id)
	if err != nil {
		return berth.Container{}, err
	}

	for {
		switch {
		case ctx.Err() != nil:
			return berth.Container{}, away(ctx, "waiting for container %q", id)
		case b.removed:
			return berth.Container{}, berth.Errorf(berth.KindNotFound, "container %q was removed", id)
		case b.State == berth.ContainerExited:
			return b.Container, nil
		}

		d.pause(ctx, b.more)
	}
}

// pause waits for one of the two without the lock.
func (d *Docker) pause(ctx context.Context, more <-chan struct{}) {
	d.mu.Unlock()
	defer d.mu.Lock()

	select {
	case <-more:
	case <-ctx.Done():
	}
}

// Logs calls take with the output after from, in order, and with some before it:
// Docker knows times only.
func (d *Docker) Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error {
	return d.hooked().Logs.do(ctx, id, func(ctx context.Context) error {
		some := func() error { // it breaks off after three new chunks
			read, again := 0, berth.LogResume{From: from}

			return d.logs(ctx, id, from, follow, func(chunk berth.LogChunk) error {
				if !again.Read(chunk) {
					read++
				}

				if read > 3 {
					return berth.Errorf(berth.KindUnavailable, "the connection broke")
				}

				return take(chunk)
			})
		}

		return d.Faults.call(ctx, "Logs", id, func() error { return d.logs(ctx, id, from, follow, take) }, some)
	})
}

func (d *Docker) logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	b, err := d.find(id)
	if err != nil {
		return err
	}

	since := from.Since(time.Now())

	for at := 0; ; {
		for ; at < len(b.log); at++ {
			c := b.log[at]

			if c.At.Before(since) {
				continue
			}

			if err := d.hand(ctx, c, take); err != nil {
				return err
			}
		}

		switch {
		case ctx.Err() != nil:
			return away(ctx, "reading the log of container %q", id)
		case b.removed, !follow, b.State == berth.ContainerExited:
			return nil
		}

		d.pause(ctx, b.more)
	}
}

// hand gives out one chunk without the lock.
func (d *Docker) hand(ctx context.Context, c berth.LogChunk, take func(berth.LogChunk) error) error {
	d.mu.Unlock()
	defer d.mu.Lock()

	if err := away(ctx, "reading a log"); err != nil {
		return err
	}

	c.Data = slices.Clone(c.Data)

	return d.Faults.call(ctx, "", "", func() error { return take(c) }, nil)
}
