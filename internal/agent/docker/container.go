package docker

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"

	"github.com/berthml/berth"
)

// daemonLostWindow is how near to the loss of the daemon an exit must be to be
// put down to it (reliability.md, failure 5).
const daemonLostWindow = 30 * time.Second

// Inspect returns the container with this ID or name; KindNotFound when it does
// not exist.
func (d *Docker) Inspect(ctx context.Context, id string) (berth.Container, error) {
	got, err := d.short.ContainerInspect(ctx, id)
	if err != nil {
		return berth.Container{}, d.translate(ctx, err, "inspecting container %q", id)
	}

	c := fromLabels(got.Config.Labels)
	c.ID = got.ID
	c.Name = strings.TrimPrefix(got.Name, "/")
	c.CreatedAt = parseTime(got.Created)
	c.State = state(got.State.Status)
	c.StartedAt = parseTime(got.State.StartedAt)
	c.OOMKilled = got.State.OOMKilled

	for _, m := range got.Mounts {
		if m.Type == mount.TypeBind {
			c.Mounts = append(c.Mounts, berth.Mount{Source: m.Source, Target: m.Destination, ReadOnly: !m.RW})
		}
	}

	if c.State == berth.ContainerRunning {
		c.PID = got.State.Pid
	} else {
		c.ExitCode = got.State.ExitCode
		c.FinishedAt = parseTime(got.State.FinishedAt)

		if d.config.KernelKilled != nil {
			c.OOMCause = d.config.KernelKilled(c.ID)
			c.OOMKilled = c.OOMKilled || c.OOMCause == berth.OOMLimit
		}
	}

	return c, nil
}

// List returns all containers of this instance on this host, by name, in any
// state, and containers that other hosts of the installation made on the same
// Docker: a worker that lost its id, or one that shares the machine. It returns
// none of another installation. It fills in identities; only Inspect fills in
// start and end times, exit codes and process ids.
func (d *Docker) List(ctx context.Context) ([]berth.Container, error) {
	got, err := d.short.ContainerList(ctx, container.ListOptions{
		All: true,
		Filters: filters.NewArgs(
			filters.Arg("label", labelInstance+"="+d.config.Instance),
		),
	})
	if err != nil {
		return nil, d.translate(ctx, err, "listing containers")
	}

	list := make([]berth.Container, 0, len(got))

	for _, summary := range got {
		c := fromLabels(summary.Labels)
		if !d.config.Owner.Owns(c) {
			continue
		}

		c.ID = summary.ID
		c.Name = strings.TrimPrefix(strings.Join(summary.Names, ","), "/")
		c.CreatedAt = time.Unix(summary.Created, 0).UTC()
		c.State = state(summary.State)
		list = append(list, c)
	}

	slices.SortFunc(list, func(a, b berth.Container) int { return cmp.Compare(a.Name, b.Name) })

	return list, nil
}

// Wait returns when the container has ended. A broken connection is no exit:
// it looks again, and when Docker stays away for APITimeout the error is
// KindUnavailable and the container may well run on.
func (d *Docker) Wait(ctx context.Context, id string) (berth.Container, error) {
	for {
		// Both end when ctx is done. Without a select on ctx the client's
		// goroutine can deliver its value, and end.
		exited, failed := d.long.ContainerWait(ctx, id, container.WaitConditionNotRunning)

		var waitErr error
		select {
		case <-exited:
		case waitErr = <-failed:
		}

		if waitErr != nil {
			if ctx.Err() != nil || cerrdefs.IsNotFound(waitErr) {
				return berth.Container{}, d.translate(ctx, waitErr, "waiting for container %q", id)
			}

			d.away.noteAbsent(time.Now())
		}

		c, err := d.inspectPatiently(ctx, id)
		if err != nil {
			return berth.Container{}, err
		}

		if c.State == berth.ContainerExited {
			c.DaemonLost = d.away.mayHaveKilled(c.StartedAt, c.FinishedAt) || c.ExitCode != 0 && d.isStopping(ctx)

			return c, nil
		}

		if err := pause(ctx); err != nil {
			return berth.Container{}, err
		}
	}
}

// inspectPatiently inspects until the daemon answers, APITimeout at most.
func (d *Docker) inspectPatiently(ctx context.Context, id string) (berth.Container, error) {
	deadline := time.Now().Add(d.config.APITimeout)

	for {
		c, err := d.Inspect(ctx, id)
		if err == nil || berth.KindOf(err) != berth.KindUnavailable || time.Now().After(deadline) {
			return c, err
		}

		if err := pause(ctx); err != nil {
			return berth.Container{}, err
		}
	}
}

// Stop sends SIGTERM, and SIGKILL when grace is over, and returns when the
// container has ended. An absent or ended container is fine: cancel races with
// completion (reliability.md, failure 38).
func (d *Docker) Stop(ctx context.Context, id string, grace time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, grace+launchTimeout)
	defer cancel()

	seconds := int(math.Ceil(grace.Seconds()))

	err := d.long.ContainerStop(bounded, id, container.StopOptions{Timeout: &seconds})
	if cerrdefs.IsNotFound(err) {
		return nil
	}

	return d.translate(ctx, err, "stopping container %q", id)
}

// Signal sends SIGTERM to a container's program, or SIGKILL to all of the container when
// kill is set. One that does not run is fine.
// It returns before the program ends at SIGTERM, and after the container ended by SIGKILL.
func (d *Docker) Signal(ctx context.Context, id string, kill bool) error {
	signal := "SIGTERM"
	if kill {
		signal = "SIGKILL"
	}

	return d.change(ctx, id, "sending "+signal+" to container %q", func(ctx context.Context) error {
		return d.long.ContainerKill(ctx, id, signal)
	})
}

// Pause freezes all processes of a container. It ignores a frozen or ended one, and one
// that is not ours: see others.
func (d *Docker) Pause(ctx context.Context, id string) error {
	return d.change(ctx, id, "pausing container %q", func(ctx context.Context) error {
		return d.long.ContainerPause(ctx, id)
	})
}

// change does something to a running container. Docker's conflict means that it has
// ended, or is frozen already.
func (d *Docker) change(ctx context.Context, id, what string, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	err := do(bounded)
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) {
		return nil
	}

	return d.translate(ctx, err, what, id)
}

// Remove removes a container that does not run; KindConflict for a running one.
// It ignores an absent one.
func (d *Docker) Remove(ctx context.Context, id string) error {
	bounded, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	err := d.long.ContainerRemove(bounded, id, container.RemoveOptions{RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
		return nil
	}

	return d.translate(ctx, err, "removing container %q", id)
}

func fromLabels(labels map[string]string) berth.Container {
	token, err := strconv.ParseInt(labels[labelToken], 10, 64)
	if err != nil {
		token = 0 // no lease has it, so no worker adopts such a container
	}

	reserved, err := strconv.ParseInt(labels[labelDeviceBytes], 10, 64)
	if err != nil {
		reserved = 0 // without a GPU there is no such label
	}

	return berth.Container{
		DeviceID:     labels[labelDevice],
		DeviceBytes:  reserved,
		AttemptID:    labels[labelAttempt],
		Token:        token,
		SpecHash:     labels[labelSpecHash],
		HostID:       labels[labelHost],
		Installation: labels[labelInstallation],
		BootID:       labels[labelBootID],
	}
}

// state folds Docker's seven words into three: a container that holds memory is
// running.
func state(docker string) berth.ContainerState {
	switch docker {
	case "created":
		return berth.ContainerCreated
	case "running", "paused", "restarting":
		return berth.ContainerRunning
	default: // exited, dead, removing
		return berth.ContainerExited
	}
}

// parseTime reads Docker's times; its "0001-01-01T00:00:00Z" is the zero time.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}

	return t.UTC()
}
