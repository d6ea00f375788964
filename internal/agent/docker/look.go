package docker

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/uuid"

	"github.com/berthml/berth"
)

// labelLook marks containers of looks and of readers of images. They have no instance
// label, so that no worker takes one for a trial. Its value is the Unix time at which the
// look is over, even if its program has died.
const labelLook = "berth.look"

// lookLabels are the labels of a look that is over after so long.
func lookLabels(after time.Duration) map[string]string {
	return map[string]string{labelLook: strconv.FormatInt(time.Now().Add(after).Unix(), 10)}
}

// lookMargin is how long after its end a look may still be busy with its removal.
const lookMargin = time.Minute

// Look runs a look to its end and removes its container, also when ctx is done.
// Errors: as Ensure; a done context's cause.
func (d *Docker) Look(ctx context.Context, l berth.Look) (berth.Looked, error) {
	launch := berth.Launch{
		AttemptID: "look-" + uuid.NewString(), Image: l.Image, Command: l.Command, Workdir: l.Workdir,
		Environment: l.Environment, Mounts: l.Mounts, MemoryBytes: l.MemoryBytes, CPUMilli: l.CPUMilli, User: l.User,
	}
	if err := CheckLaunch(launch); err != nil {
		return berth.Looked{}, err
	}

	image, err := d.ResolveImage(ctx, l.Image)
	if err != nil {
		return berth.Looked{}, err
	}

	d.discardOld(ctx)

	user := ResolveUser(image.User, l.User, os.Getuid(), os.Getgid())
	config := containerConfig(launch, image, user, lookLabels(l.Timeout+2*launchTimeout))
	config.Hostname, config.AttachStdout, config.AttachStderr = "look", true, true

	name := "berth-" + launch.AttemptID

	// Docker may make a container for a canceled request: wait for the answer,
	// and remove the name in any case.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), launchTimeout)
	defer cancel()
	defer d.discard(ctx, name)

	made, err := d.long.ContainerCreate(bounded, config, sealedHost(hostConfig(launch, d.config.CPUs), l.MemoryBytes, image.Volumes), nil, nil, name)

	switch {
	case err == nil:
	case strings.Contains(err.Error(), "bind source path does not exist"):
		return berth.Looked{}, berth.Errorf(berth.KindNotFound,
			"Docker runs on another machine, as DOCKER_HOST says, and has no such directory: %w", err)
	default:
		return berth.Looked{NoUser: noUser(err)}, d.launchError(ctx, bounded, err, "creating", name, launch)
	}

	return d.watchLook(ctx, made.ID, name, l, launch)
}

// watchLook starts a created look and collects its output until it ends, or its
// time is over. The time begins when Docker has started it.
func (d *Docker) watchLook(ctx context.Context, id, name string, l berth.Look, launch berth.Launch) (berth.Looked, error) {
	starting, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	streams, err := d.long.ContainerAttach(starting, id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true})
	if err != nil {
		return berth.Looked{}, d.translate(ctx, err, "reading what container %q writes", name)
	}
	defer streams.Close()

	asked := time.Now()
	stdout, stderr := &capture{since: asked}, &capture{since: asked}

	if err := d.long.ContainerStart(starting, id, container.StartOptions{}); err != nil {
		return berth.Looked{Foreign: isForeign(err.Error()), NoUser: noUser(err)}, d.launchError(ctx, starting, err, "starting", name, launch)
	}

	timed, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()

	closed := context.AfterFunc(timed, streams.Close)
	defer closed()

	_, copyErr := stdcopy.StdCopy(stdout, stderr, streams.Reader)
	out := berth.Looked{TimedOut: errors.Is(timed.Err(), context.DeadlineExceeded)}
	out.Stdout, out.FirstOutput = stdout.read()
	out.Stderr, _ = stderr.read()

	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case out.TimedOut:
		return out, nil
	case copyErr != nil:
		return out, d.translate(ctx, copyErr, "reading what container %q writes", name)
	}

	ended, err := d.Wait(timed, id)
	if err != nil {
		out.TimedOut = ctx.Err() == nil && errors.Is(timed.Err(), context.DeadlineExceeded)
		if out.TimedOut {
			return out, nil
		}

		return out, err
	}

	out.ExitCode, out.OutOfMemory = ended.ExitCode, ended.OOMKilled
	out.Foreign = out.ExitCode != 0 && isForeign(string(out.Stderr))

	return out, nil
}

// isForeign reports whether a text is the kernel's word for a program of another
// kind of processor, from runc or from the init process.
func isForeign(text string) bool {
	return strings.Contains(strings.ToLower(text), "exec format error")
}

// noUser reports whether Docker does not find a user or group in an image.
func noUser(err error) bool {
	return strings.Contains(err.Error(), "unable to find user") || strings.Contains(err.Error(), "unable to find group")
}

// discardOld removes the containers of old looks: their process was killed before
// it removed them.
func (d *Docker) discardOld(ctx context.Context) {
	old, err := d.short.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelLook))})
	if err != nil {
		return // the look itself reports the problem with Docker
	}

	for _, c := range old {
		over, err := strconv.ParseInt(c.Labels[labelLook], 10, 64)
		if err == nil && time.Since(time.Unix(over, 0)) > lookMargin {
			d.discard(ctx, c.ID)
		}
	}
}

// discard kills and removes the container of a look, if there is one. It
// ignores a done context: no other code would remove the container.
func (d *Docker) discard(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), launchTimeout)
	defer cancel()

	err := d.long.ContainerRemove(ctx, name, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !cerrdefs.IsNotFound(err) {
		d.away.noteAbsent(time.Now())
	}
}

// capture keeps the beginning and the end of a stream, and when it began.
type capture struct {
	since time.Time

	mu    sync.Mutex
	begin []byte
	end   []byte // the end of the bytes behind begin
	first time.Duration
}

// captureHalf is the kept size of each end of a stream.
const captureHalf = berth.MaxLookBytes / 2

func (c *capture) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.first == 0 {
		c.first = time.Since(c.since)
	}

	head := min(len(data), captureHalf-len(c.begin))
	c.begin = append(c.begin, data[:head]...)
	c.end = append(c.end, data[head:]...)

	if len(c.end) > 2*captureHalf { // seldom, as it moves much
		c.end = slices.Delete(c.end, 0, len(c.end)-captureHalf)
	}

	return len(data), nil
}

func (c *capture) read() ([]byte, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return slices.Concat(c.begin, c.end[max(0, len(c.end)-captureHalf):]), c.first
}
