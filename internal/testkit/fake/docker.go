package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// Exit codes as Docker reports them.
const (
	codeKilled     = 128 + 9
	codeTerminated = 128 + 15
	codeRebooted   = 255
)

// chunkBytes is the longest piece in which Docker hands out a line.
const chunkBytes = 16 << 10

// Docker is a host's Docker. It is safe for concurrent use.
type Docker struct {
	Faults  Faults // set before the first call
	program Program
	image   string
	changed func()
	group   sync.WaitGroup // the programs

	mu    sync.Mutex
	hooks DockerHooks
	boot  string
	made  int
	box   map[string]*box // by name
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

// NewDocker returns a Docker without containers. It has one image and runs one
// program, whatever a launch commands. It calls changed after every change; nil
// = it does not.
func NewDocker(boot, image string, program Program, changed func()) *Docker {
	if changed == nil {
		changed = func() {}
	}

	return &Docker{boot: boot, image: image, program: program, changed: changed, box: make(map[string]*box)}
}

// Close kills the running containers and returns when their programs have
// ended.
func (d *Docker) Close() {
	d.endAll(codeKilled)
	d.group.Wait()
}

// Reboot ends the machine and starts it again: running containers have ended,
// and later ones carry the other boot's name.
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

// Name is the name of an attempt's container.
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

// away is the error of a call whose context is done: its cause stays visible.
func away(ctx context.Context, format string, args ...any) error {
	if ctx.Err() == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), context.Cause(ctx))
}
