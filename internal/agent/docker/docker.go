// Package docker runs Berth's containers. It is the only home of the Docker
// client: foreign errors become berth errors here and nowhere else.
//
// A container's name comes from its attempt, so that a second request finds the
// existing container (rules R1 and R2):
//
//	absent ── Ensure ──▶ created ── start ──▶ running ──▶ exited ── Remove ──▶ absent
//	                        ▲ start               ▲ adopt     ▲ collect
//	                        └──────── Ensure, same attempt and token ───────┘
//
// Nothing here stops a container because a context is done (rule R5).
package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/berthml/berth"
)

const (
	// apiTimeout is how long one question to the daemon may take. A hung
	// daemon (reliability.md, failure 6) must not hang the worker.
	apiTimeout = 10 * time.Second

	// launchTimeout bounds create and start, which wait for the disk: 0.2-0.4 s
	// idle, above 10 s seen when many images were unpacked at once.
	launchTimeout = time.Minute

	// retryEvery is the pause between two tries while the daemon is away.
	retryEvery = 200 * time.Millisecond
)

// namePattern matches the characters that Docker allows in a container name
// after its first.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Config says whose containers these are. Two Berths on one machine must have
// different instances.
type Config struct {
	Instance   string        // part of every name; never empty
	Owner      berth.Owner   // labels; containers that are not its own are left alone
	BootID     string        // label; tells containers of an earlier boot
	APITimeout time.Duration // of one question; default 10 s
	CPUs       int           // of the machine, by which frameworks size their pools of threads; 0 = unknown

	// KernelKilled is a second witness of the kernel's memory killer, asked
	// about ended containers: Docker's own flag is sometimes lost when a
	// container ends right after the kill. nil = none.
	KernelKilled func(containerID string) berth.OOMCause
}

// Docker talks to the daemon that DOCKER_HOST names, or the local one. It is
// safe for concurrent use.
type Docker struct {
	config Config
	short  *client.Client // ends every request after APITimeout
	long   *client.Client // for wait, logs, events and stop: the caller's context ends those
	away   absence

	makingNetwork sync.Mutex                           // one at a time makes the network of trials
	gpus          atomic.Pointer[map[string]gpuAccess] // by UUID; nil = none
}

// New returns a Docker. It does not talk to the daemon yet, which may be down.
func New(config Config) (*Docker, error) {
	if !namePattern.MatchString(config.Instance) {
		return nil, berth.Errorf(berth.KindInvalid, "instance %q must be letters, digits and _.-", config.Instance)
	}

	if config.APITimeout <= 0 {
		config.APITimeout = apiTimeout
	}

	short, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation(),
		client.WithTimeout(config.APITimeout))
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "making a Docker client: %w", err)
	}

	long, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "making a Docker client: %w", err)
	}

	return &Docker{config: config, short: short, long: long}, nil
}

// Close closes idle connections.
func (d *Docker) Close() error {
	return errors.Join(d.short.Close(), d.long.Close())
}

// Info is the abilities of the daemon and its machine.
type Info struct {
	ID            string // of the daemon; it outlives restarts
	Version       string
	APIVersion    string // negotiated
	CgroupVersion string // 1 or 2
	CgroupDriver  string // cgroupfs or systemd
	RootDir       string // of images and containers, on the daemon's machine
	LiveRestore   bool   // containers outlive a restart of the daemon
	MemoryLimit   bool   // the kernel enforces memory limits
	SwapLimit     bool   // and limits swap with them
	PidsLimit     bool
	Warnings      []string // problems that a person should fix, in plain words
}

// Info asks the daemon about itself.
func (d *Docker) Info(ctx context.Context) (Info, error) {
	got, err := d.short.Info(ctx)
	if err != nil {
		return Info{}, d.translate(ctx, err, "asking Docker about itself")
	}

	info := Info{
		ID:            got.ID,
		Version:       got.ServerVersion,
		APIVersion:    d.short.ClientVersion(),
		CgroupVersion: got.CgroupVersion,
		CgroupDriver:  got.CgroupDriver,
		RootDir:       got.DockerRootDir,
		LiveRestore:   got.LiveRestoreEnabled,
		MemoryLimit:   got.MemoryLimit,
		SwapLimit:     got.SwapLimit,
		PidsLimit:     got.PidsLimit,
	}
	info.Warnings = info.warn()

	return info, nil
}

func (i Info) warn() []string {
	var warnings []string

	if !i.LiveRestore {
		warnings = append(warnings, "Docker's live-restore is off: restarting Docker kills every trial; "+
			`set "live-restore": true in its daemon.json`)
	}

	if !i.MemoryLimit {
		warnings = append(warnings, "the kernel does not enforce memory limits of containers: "+
			"one trial can take the memory of all; enable the memory cgroup")
	}

	if i.MemoryLimit && !i.SwapLimit {
		warnings = append(warnings, "the kernel does not limit swap of containers: trials that need more memory "+
			"than reserved will be slow instead of retried; boot with swapaccount=1 or turn swap off")
	}

	if !i.PidsLimit {
		warnings = append(warnings, "the kernel does not limit the processes of containers: enable the pids cgroup")
	}

	return warnings
}

// translate is the function of that name, and remembers when the daemon was
// away. One that is only slow, or frozen, has killed nothing.
func (d *Docker) translate(ctx context.Context, err error, format string, args ...any) error {
	err = translate(ctx, err, format, args...)
	if berth.KindOf(err) == berth.KindUnavailable && !errors.Is(err, context.DeadlineExceeded) {
		d.away.noteAbsent(time.Now())
	}

	return err
}

// unnegotiated reports whether Docker refuses the version of its API that was
// asked for. The client asks for its own where Docker's answer to its ping was
// lost, and pings again before the next request.
func unnegotiated(err error) bool {
	return cerrdefs.IsInvalidArgument(err) && strings.Contains(err.Error(), "client version") && strings.Contains(err.Error(), "is too new")
}

// translate gives a Docker error its kind. A done context keeps its cause, so
// that callers can tell a cancellation from a shutdown (rule R5).
func translate(ctx context.Context, err error, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)

	var network net.Error

	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case cerrdefs.IsNotFound(err):
		return berth.Errorf(berth.KindNotFound, "%s: %w", doing, err)
	case cerrdefs.IsConflict(err):
		return berth.Errorf(berth.KindConflict, "%s: %w", doing, err)
	case unnegotiated(err):
		return berth.Errorf(berth.KindUnavailable, "%s: Docker's answer about its version was lost, or it is older than this client: %w", doing, err)
	case cerrdefs.IsInvalidArgument(err):
		return berth.Errorf(berth.KindInvalid, "%s: %w", doing, err)
	case client.IsErrConnectionFailed(err), cerrdefs.IsUnavailable(err), errors.As(err, &network),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded):
		return berth.Errorf(berth.KindUnavailable, "%s: Docker does not answer: %w", doing, err)
	default:
		return berth.Errorf(berth.KindInternal, "%s: %w", doing, err)
	}
}
