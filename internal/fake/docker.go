package fake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// Exit codes as Docker reports them.
const (
	codeKilled   = 128 + 9
	codeRebooted = 255
)

// chunkBytes is the longest piece in which Docker hands out a line.
const chunkBytes = 16 << 10

// Docker is a host's Docker. It is safe for concurrent use.
type Docker struct {
	program Program
	image   string
	changed func()
	group   sync.WaitGroup // the programs

	mu   sync.Mutex
	boot string
	made int
	box  map[string]*box // by name
}

// box is a container. Its channels are closed, and more replaced, under the
// Docker's lock.
type box struct {
	berth.Container

	launch     berth.Launch
	log        []berth.LogChunk
	partial    map[string][]byte // a line without its end, by stream
	stamp      time.Time         // of the last chunk
	more       chan struct{}     // closed when there is more log, or the end
	terminated chan struct{}
	killed     chan struct{}
	removed    bool
}

// NewDocker returns a Docker without containers, which has one image and runs
// one program, whatever a launch commands. changed is called after every
// change; nil = nobody looks.
func NewDocker(boot, image string, program Program, changed func()) *Docker {
	if changed == nil {
		changed = func() {}
	}

	return &Docker{boot: boot, image: image, program: program, changed: changed, box: make(map[string]*box)}
}

// Close kills what runs and returns when its programs have ended.
func (d *Docker) Close() {
	d.endAll(codeKilled)
	d.group.Wait()
}

// Reboot ends the machine and starts it again: what ran has ended, and what is
// made from now on bears the name of another boot.
func (d *Docker) Reboot(boot string) {
	d.mu.Lock()
	d.boot = boot
	d.mu.Unlock()
	d.endAll(codeRebooted)
}

func (d *Docker) endAll(code int) {
	for _, b := range d.boxes() {
		d.end(b, code)
	}
}

func (d *Docker) boxes() []*box {
	d.mu.Lock()
	defer d.mu.Unlock()

	return slices.Collect(maps.Values(d.box))
}

// Live are the containers that run now.
func (d *Docker) Live() []berth.Container {
	d.mu.Lock()
	defer d.mu.Unlock()

	var live []berth.Container

	for _, b := range d.box {
		if b.State == berth.ContainerRunning {
			live = append(live, b.Container)
		}
	}

	return live
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

// Name is what an attempt's container is called.
func (d *Docker) Name(attemptID string) string { return "berth-fake-" + attemptID }

// find looks for a container by id or name, under the lock.
func (d *Docker) find(id string) (*box, error) {
	if b := d.box[id]; b != nil {
		return b, nil
	}

	for _, b := range d.box {
		if b.ID == id {
			return b, nil
		}
	}

	return nil, berth.Errorf(berth.KindNotFound, "no container %q", id)
}

// Ensure starts the launch's container, or adopts the one that is there.
func (d *Docker) Ensure(ctx context.Context, l berth.Launch) (berth.Container, error) {
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

// Create goes half the way of Ensure: as when the worker dies between Docker's
// create and start (reliability.md, failure 3).
func (d *Docker) Create(ctx context.Context, l berth.Launch) error {
	defer d.changed()
	d.mu.Lock()
	defer d.mu.Unlock()

	_, err := d.create(ctx, l)

	return err
}

// create makes a container, or finds the one of the same launch, under the lock.
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
			ID: hex.EncodeToString(id[:]), Name: name, AttemptID: l.AttemptID, SweepID: l.SweepID, TrialID: l.TrialID,
			LeaseID: l.LeaseID, Token: l.Token, SpecHash: cmp.Or(l.SpecHash, hash(l)), BootID: d.boot, Mounts: l.Mounts, State: berth.ContainerCreated, CreatedAt: time.Now().UTC(),
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

// hash is that of what a launch runs, without whose it is.
func hash(l berth.Launch) string {
	l.AttemptID, l.SweepID, l.TrialID, l.LeaseID, l.Token = "", "", "", "", 0

	data, err := json.Marshal(l)
	if err != nil {
		panic("fake: launch cannot be marshalled: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// away is the error of a call whose context is done: its cause stays visible.
func away(ctx context.Context, format string, args ...any) error {
	if ctx.Err() == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), context.Cause(ctx))
}

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

// List returns all containers by name, as Docker's list does: who they are and
// whether they run.
func (d *Docker) List(ctx context.Context) ([]berth.Container, error) {
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
// is removed meanwhile; the context's cause.
func (d *Docker) Wait(ctx context.Context, id string) (berth.Container, error) {
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

// Stop sends SIGTERM, and SIGKILL after grace, whether or not somebody still
// waits for that. An absent container is a success.
func (d *Docker) Stop(ctx context.Context, id string, grace time.Duration) error {
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
}

// Remove removes a container that does not run. An absent one is a success.
// Errors: conflict.
func (d *Docker) Remove(ctx context.Context, id string) error {
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
}

// Logs calls take with the output after from, in order.
func (d *Docker) Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	b, err := d.find(id)
	if err != nil {
		return err
	}

	for at := 0; ; {
		for ; at < len(b.log); at++ {
			c := b.log[at]

			after := from.Stdout
			if c.Stream == berth.Stderr {
				after = from.Stderr
			}

			if !c.At.After(after) {
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

	return take(c)
}
