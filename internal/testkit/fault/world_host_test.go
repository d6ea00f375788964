package fault_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/testkit/fault"
)

func (w *world) machine() berth.Host {
	return berth.Host{
		ID: host, Name: host, BootID: fmt.Sprintf("boot-%d", w.boot), CPUMilli: 4000, MemoryBytes: 5 * gib, MemoryHeadroomBytes: gib,
	}
}

// begin starts a worker process.
func (w *world) begin() {
	w.note("a worker starts, boot %d", w.boot)

	p := &worker{Life: fault.NewLife()}
	p.ctx, p.end = context.WithCancelCause(p.Within(context.Background()))
	log := slog.New(slog.DiscardHandler)

	p.executor = runtrial.New(w.docker, w.ledger,
		func(c berth.Container) (runtrial.Meter, error) { return gauge{p, w, c}, nil },
		runtrial.Config{DataDir: w.dir, Grace: 5 * time.Second, SampleEvery: time.Second, BootID: w.machine().BootID}, log)

	reconciler := reconcile.New(w.docker, w.ledger, reconcile.Config{
		Host: w.machine(), Attempts: p.executor, Free: func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 4 * gib} },
		Every: w.every, Grace: w.grace,
	}, log)

	p.group.Go(func() {
		for reconciler.Register(p.ctx) != nil && p.ctx.Err() == nil {
			time.Sleep(time.Second)
		}

		_ = reconciler.Run(p.ctx) // ends with ctx
	})

	w.mu.Lock()
	w.worker = p
	w.mu.Unlock()
}

// stop ends the worker: killed, or told to stop.
func (w *world) stop(killed bool) {
	w.mu.Lock()
	p := w.worker
	w.worker = nil
	w.dead = append(w.dead, p)
	w.mu.Unlock()

	if killed {
		w.note("the worker is killed")
		w.count("killed")
		p.Kill()
		p.end(errCrash)

		return
	}

	w.note("the worker is told to stop")
	w.count("stopped")
	p.end(errShutdown)

	stopped := make(chan struct{})

	go func() {
		p.group.Wait()
		close(stopped)
	}()

	select {
	case <-stopped:
	case <-time.After(20 * time.Second): // WorkerStopTimeout
		w.note("it does not stop in time and is killed")
		p.Kill()
	}
}

// running is the worker that runs; it waits for one.
func (w *world) running() *worker {
	for {
		w.mu.Lock()
		p := w.worker
		w.mu.Unlock()

		if p != nil {
			return p
		}

		time.Sleep(500 * time.Millisecond)
	}
}

// reboot restarts the machine.
func (w *world) reboot() {
	w.note("the machine is restarted")
	w.count("restarted")
	w.stop(true)
	w.mu.Lock()
	w.boot++
	w.mu.Unlock()
	w.docker.Reboot(w.machine().BootID)
	time.Sleep(w.seconds(5, 60))
	w.begin()
}
