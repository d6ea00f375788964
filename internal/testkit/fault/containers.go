package fault

import (
	"context"
	"math"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
)

// ContainerPort is Docker as the executor and the reconciler use it.
type ContainerPort interface {
	runtrial.Containers
	reconcile.Containers
}

// halfway is a Docker that can be stopped between create and start.
type halfway interface {
	Create(ctx context.Context, l berth.Launch) error
}

// Containers is a Docker that fails.
type Containers struct {
	*Injector

	next ContainerPort
	life *Life
}

var _ ContainerPort = (*Containers)(nil)

// Containers wraps the Docker of one process.
func (i *Injector) Containers(next ContainerPort, life *Life) *Containers {
	return &Containers{next: next, Injector: i, life: life}
}

// Name is next's.
func (c *Containers) Name(attemptID string) string { return c.next.Name(attemptID) }

// Ensure fails half-way where next can.
func (c *Containers) Ensure(ctx context.Context, l berth.Launch) (berth.Container, error) {
	return call(ctx, c.Injector, c.life, Docker, "Ensure", l.AttemptID,
		func() (berth.Container, error) { return c.next.Ensure(ctx, l) },
		func() (berth.Container, error) {
			if h, ok := c.next.(halfway); ok {
				return berth.Container{}, h.Create(ctx, l)
			}

			return c.next.Ensure(ctx, l)
		})
}

// Wait is next's, or fails.
func (c *Containers) Wait(ctx context.Context, id string) (berth.Container, error) {
	return call(ctx, c.Injector, c.life, Docker, "Wait", id, func() (berth.Container, error) { return c.next.Wait(ctx, id) }, nil)
}

// Stop is next's, or fails.
func (c *Containers) Stop(ctx context.Context, id string, grace time.Duration) error {
	return c.do(ctx, "Stop", id, func() error { return c.next.Stop(ctx, id, grace) })
}

// Remove is next's, or fails.
func (c *Containers) Remove(ctx context.Context, id string) error {
	return c.do(ctx, "Remove", id, func() error { return c.next.Remove(ctx, id) })
}

// List is next's, or fails.
func (c *Containers) List(ctx context.Context) ([]berth.Container, error) {
	return call(ctx, c.Injector, c.life, Docker, "List", "", func() ([]berth.Container, error) { return c.next.List(ctx) }, nil)
}

// Logs breaks off half-way, too: after three new chunks.
func (c *Containers) Logs(ctx context.Context, id string, from berth.LogPosition, follow bool, take func(berth.LogChunk) error) error {
	const some = 3

	read := func(limit int) func() (struct{}, error) {
		return func() (struct{}, error) {
			again := berth.LogResume{From: from}
			err := c.next.Logs(ctx, id, from, follow, func(chunk berth.LogChunk) error {
				if !again.Read(chunk) {
					limit--
				}

				if limit < 0 {
					return berth.Errorf(berth.KindUnavailable, "injected: the connection broke")
				}

				if !c.life.alive() {
					return errDead
				}

				return take(chunk)
			})

			return struct{}{}, err
		}
	}

	_, err := call(ctx, c.Injector, c.life, Docker, "Logs", id, read(math.MaxInt), read(some))

	return err
}

func (c *Containers) do(ctx context.Context, method, subject string, work func() error) error {
	_, err := call(ctx, c.Injector, c.life, Docker, method, subject, func() (struct{}, error) { return struct{}{}, work() }, nil)

	return err
}
