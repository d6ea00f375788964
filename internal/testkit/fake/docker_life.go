package fake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/berthml/berth"
)

// What a host's Docker does to containers.

// Ensure starts the launch's container, or adopts the existing one.
func (d *Docker) Ensure(ctx context.Context, l berth.Launch) (berth.Container, error) {
	return d.hooked().Ensure.call(ctx, l, func(ctx context.Context) (c berth.Container, err error) {
		err = d.Faults.call(ctx, "Ensure", l.AttemptID, func() (err error) {
			c, err = d.ensure(ctx, l)

			return err
		}, func() error { return d.Create(ctx, l) })

		return c, err
	})
}

func (d *Docker) ensure(ctx context.Context, l berth.Launch) (berth.Container, error) {
	defer d.changed()
	d.mu.Lock()
	defer d.mu.Unlock()

	adopted := d.box[d.Name(l.AttemptID)] != nil

	b, err := d.create(ctx, l)
	if err != nil {
		return berth.Container{}, err
	}

	if b.State == berth.ContainerCreated {
		d.start(b)
	}

	c := b.Container
	c.Adopted = adopted

	return c, nil
}

// do is a call of a method about a container.
func (d *Docker) do(ctx context.Context, hook Command[string], method, id string, work func(ctx context.Context) error) error {
	return hook.do(ctx, id, func(ctx context.Context) error {
		return d.Faults.call(ctx, method, id, func() error { return work(ctx) }, nil)
	})
}

// Create goes half the way of Ensure: as when the worker dies between Docker's
// create and start (reliability.md, failure 3).
func (d *Docker) Create(ctx context.Context, l berth.Launch) error {
	defer d.changed()
	d.mu.Lock()
	defer d.mu.Unlock()

	_, err := d.create(ctx, l)

	return err
}

// create makes a container, or finds the existing one of the same launch, under
// the lock.
func (d *Docker) create(ctx context.Context, l berth.Launch) (*box, error) {
	name := d.Name(l.AttemptID)

	if err := away(ctx, "creating container %q", name); err != nil {
		return nil, err
	}

	if b := d.box[name]; b != nil {
		if b.Token != l.Token || l.SpecHash != "" && b.SpecHash != l.SpecHash {
			return nil, berth.Errorf(berth.KindConflict, "container %q belongs to another launch (token %d, ours is %d)", name, b.Token, l.Token)
		}

		return b, nil
	}

	if l.Image != d.image {
		return nil, &berth.StartError{Kind: berth.FailureImageMissing, Err: berth.Errorf(berth.KindInvalid, "no image %q", l.Image)}
	}

	d.made++

	id := sha256.Sum256([]byte(strconv.Itoa(d.made)))
	b := &box{
		launch: l, partial: make(map[string][]byte),
		more: make(chan struct{}), terminated: make(chan struct{}), killed: make(chan struct{}),
		Container: berth.Container{
			ID: hex.EncodeToString(id[:]), Name: name, AttemptID: l.AttemptID,
			Token: l.Token, SpecHash: cmp.Or(l.SpecHash, hash(l)), BootID: d.boot, Mounts: l.Mounts, State: berth.ContainerCreated, CreatedAt: time.Now().UTC(),
		},
	}
	d.box[name] = b

	return b, nil
}

// start runs a container's program, under the lock.
func (d *Docker) start(b *box) {
	b.State, b.PID, b.StartedAt = berth.ContainerRunning, 1000+d.made, time.Now().UTC()

	d.group.Go(func() { d.end(b, d.program(&Process{docker: d, box: b, Launch: b.launch})) })
}

// end lets a container exit, once.
func (d *Docker) end(b *box, code int) {
	d.mu.Lock()

	if b.State == berth.ContainerRunning {
		for stream := range b.partial {
			d.emit(b, stream, true)
		}

		b.State, b.PID, b.ExitCode, b.FinishedAt = berth.ContainerExited, 0, code, time.Now().UTC()
		close(b.killed)
		b.wake()
	}

	d.mu.Unlock()
	d.changed()
}

func (b *box) wake() {
	close(b.more)
	b.more = make(chan struct{})
}

// hash is the hash of a launch without its identity.
func hash(l berth.Launch) string {
	l.AttemptID, l.SweepID, l.TrialID, l.LeaseID, l.Token = "", "", "", "", 0

	data, err := json.Marshal(l)
	if err != nil {
		panic("fake: launch cannot be marshalled: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// Stop sends SIGTERM, and SIGKILL after grace, also when the caller stops
// waiting. An absent container is a success.
func (d *Docker) Stop(ctx context.Context, id string, grace time.Duration) error {
	return d.do(ctx, d.hooked().Stop, "Stop", id, func(ctx context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()

		if err := away(ctx, "stopping container %q", id); err != nil {
			return err
		}

		b, err := d.find(id)
		if err != nil || b.State != berth.ContainerRunning {
			return nil // absent, or ended already
		}

		select {
		case <-b.terminated:
		default:
			close(b.terminated)
		}

		kill := time.AfterFunc(grace, func() { d.end(b, codeKilled) })

		for b.State == berth.ContainerRunning {
			if err := away(ctx, "stopping container %q", id); err != nil {
				return err
			}

			d.pause(ctx, b.more)
		}

		kill.Stop()

		return nil
	})
}

// Remove removes a container that does not run. An absent one is a success.
// Errors: conflict.
func (d *Docker) Remove(ctx context.Context, id string) error {
	return d.do(ctx, d.hooked().Remove, "Remove", id, func(ctx context.Context) error {
		defer d.changed()
		d.mu.Lock()
		defer d.mu.Unlock()

		if err := away(ctx, "removing container %q", id); err != nil {
			return err
		}

		b, err := d.find(id)
		if err != nil {
			return nil // absent
		}

		if b.State == berth.ContainerRunning {
			return berth.Errorf(berth.KindConflict, "container %q runs: stop it first", id)
		}

		d.drop(b)

		return nil
	})
}

// Prune removes all containers that do not run, as `docker container prune`
// does: a person is free to.
func (d *Docker) Prune() {
	for _, b := range d.boxes() {
		d.mu.Lock()

		if b.State != berth.ContainerRunning && !b.removed {
			d.drop(b)
		}

		d.mu.Unlock()
	}

	d.changed()
}

// drop removes a container, under the lock.
func (d *Docker) drop(b *box) {
	delete(d.box, b.Name)
	b.removed = true
	b.wake()
}

// RemoveByForce kills a container and removes it in one step, as `docker rm
// --force` does: a person is free to.
func (d *Docker) RemoveByForce(id string) {
	d.mu.Lock()

	if b, err := d.find(id); err == nil {
		if b.State == berth.ContainerRunning {
			b.State, b.PID, b.ExitCode, b.FinishedAt = berth.ContainerExited, 0, codeKilled, time.Now().UTC()
			close(b.killed)
		}

		d.drop(b)
	}

	d.mu.Unlock()
	d.changed()
}
