package docker

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/berthml/berth"
)

// ensureTries bounds how often Ensure looks again when a container of its name
// appears or disappears under its hands.
const ensureTries = 10

// Ensure starts the launch's container once and only once, however often it is
// called (rule R2). It adopts the container of the same attempt and token: it
// starts a created one, leaves a running one alone, and returns an exited one
// with its exit. If the launch names a hash, the container must have it: an
// upgraded Berth computes another hash and still adopts the container. Any
// other container under that name is a KindConflict.
//
// A *berth.StartError says that the launch or the host is at fault, as its kind
// tells; the container, when there is one, is returned with it. KindUnavailable
// is ambiguous: the container may run, and the next call finds it.
func (d *Docker) Ensure(ctx context.Context, l berth.Launch) (berth.Container, error) {
	if err := CheckLaunch(l); err != nil {
		return berth.Container{}, err
	}

	var last error

	for range ensureTries {
		found, err := d.Inspect(ctx, d.Name(l.AttemptID))
		if err == nil {
			return d.adopt(ctx, found, l)
		}

		if berth.KindOf(err) != berth.KindNotFound {
			return berth.Container{}, err
		}

		made, err := d.create(ctx, l)
		if err == nil {
			return d.start(ctx, made, l)
		}

		// Another process took the name, or its earlier owner still runs.
		if berth.KindOf(err) != berth.KindConflict {
			return berth.Container{}, err
		}

		last = err
		if err := pause(ctx); err != nil {
			return berth.Container{}, err
		}
	}

	return berth.Container{}, last
}

func (d *Docker) adopt(ctx context.Context, found berth.Container, l berth.Launch) (berth.Container, error) {
	found.Adopted = true

	if found.AttemptID != l.AttemptID || found.Token != l.Token || l.SpecHash != "" && found.SpecHash != l.SpecHash {
		return berth.Container{}, berth.Errorf(berth.KindConflict,
			"E_NAME_COLLISION: container %q belongs to another launch (token %d, ours is %d)",
			found.Name, found.Token, l.Token)
	}

	if found.State == berth.ContainerCreated {
		return d.start(ctx, found, l)
	}

	return found, nil
}

func (d *Docker) create(ctx context.Context, l berth.Launch) (berth.Container, error) {
	image, err := d.resolve(ctx, l.Image)
	name := d.Name(l.AttemptID)

	switch {
	case err == nil:
	case berth.KindOf(err) == berth.KindInternal: // Docker cannot read its copy of the image
		return berth.Container{}, d.launchError(ctx, ctx, err, "creating", name, l)
	default:
		return berth.Container{}, err
	}

	way, err := d.gpu(l)
	if err != nil {
		return berth.Container{}, err
	}

	if l.Network {
		if err := d.ensureTrialNetwork(ctx); err != nil {
			return berth.Container{}, err
		}
	}

	user := ResolveUser(image.User, l.User, os.Getuid(), os.Getgid())
	config, host := containerConfig(l, image, user, d.labels(l)), sealedHost(hostConfig(l, d.config.CPUs), l.MemoryBytes, image.Volumes)
	withGPU(config, host, way)

	bounded, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	made, err := d.long.ContainerCreate(bounded, config, host, nil, nil, name)

	switch {
	case err == nil:
		return berth.Container{ID: made.ID, Name: name, AttemptID: l.AttemptID}, nil
	case cerrdefs.IsConflict(err), cerrdefs.IsNotFound(err): // the name is taken; the image has just gone
		return berth.Container{}, d.translate(ctx, err, "creating container %q", name)
	default:
		return berth.Container{}, d.launchError(ctx, bounded, err, "creating", name, l)
	}
}

// start starts a created container, and ignores a running one.
func (d *Docker) start(ctx context.Context, c berth.Container, l berth.Launch) (berth.Container, error) {
	bounded, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	if err := d.long.ContainerStart(bounded, c.ID, container.StartOptions{}); err != nil {
		return c, d.launchError(ctx, bounded, err, "starting", c.Name, l)
	}

	started, err := d.Inspect(ctx, c.ID)
	if err != nil {
		return c, err
	}

	started.Adopted = c.Adopted

	return started, nil
}

// launchError finds the cause of an error of creating or starting a container.
// An answer from Docker is about the launch or the machine: a
// *berth.StartError. Without an answer, and while Docker stops or has just come
// back, the cause is unknown: unavailable, or ctx's cause. bounded is the
// request's own context.
func (d *Docker) launchError(ctx, bounded context.Context, err error, doing, name string, l berth.Launch) error {
	told := d.translate(ctx, err, "%s container %q", doing, name)

	switch {
	case ctx.Err() != nil, bounded.Err() != nil, berth.KindOf(told) == berth.KindUnavailable:
		return told
	case d.away.covers(time.Now()), d.isStopping(ctx): // an error from a stopping Docker is not about the launch
		return berth.Errorf(berth.KindUnavailable, "%s container %q: Docker is stopping or has just come back: %w", doing, name, err)
	default:
		return startError(err, doing, name, l)
	}
}

// badCommand are runc's texts for a command that cannot run. A broken host
// (runc, its security module, its file system) gives the same texts for its own
// files. With an init process most bad commands start and end with 126 or 127
// instead, which internal/failure reads.
var badCommand = []string{
	"executable file not found",
	"no such file or directory",
	"permission denied",
	"is a directory",
	"not a directory",
	"exec format error",
	"invalid argument",
}

// badLaunch reports whether the launch could start on no host: runc or dockerd,
// Docker 20.10 to 28, names its command, directory or user.
func badLaunch(text string, l berth.Launch) bool {
	says := func(words string) bool { return strings.Contains(text, words) }

	return says(`exec: "`+l.Command[0]+`"`) && slices.ContainsFunc(badCommand, says) ||
		l.Workdir != "" && slices.ContainsFunc([]string{
			`chdir to cwd ("` + l.Workdir + `")`, "mkdir " + l.Workdir + ":",
			"mkdir: " + l.Workdir + " is not a directory", "working directory '" + l.Workdir + "'",
		}, says) ||
		l.Workdir != "" && belowFile(text, l.Workdir) ||
		says("unable to find user") || says("unable to find group")
}

// belowFile reports whether dockerd met a file of the image where the working
// directory, or one above it, should be.
func belowFile(text, workdir string) bool {
	for dir := workdir; strings.Contains(text, "lstat ") && path.Dir(dir) != dir; dir = path.Dir(dir) {
		if strings.Contains(text, dir+": not a directory") {
			return true
		}
	}

	return false
}

// startError tells a bad launch from a bad machine. Mounts are ours, so what
// is wrong with them is not the user's fault.
func startError(err error, doing, name string, l berth.Launch) error {
	kind := berth.FailureInfra
	if text := err.Error(); badLaunch(text, l) && !strings.Contains(text, "mount") {
		kind = berth.FailureBadCommand
	}

	return &berth.StartError{Kind: kind, Err: berth.Errorf(berth.KindInvalid, "%s container %q: %w", doing, name, err)}
}

// pause waits retryEvery, or returns the context's cause.
func pause(ctx context.Context) error {
	timer := time.NewTimer(retryEvery)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
