package fake

import (
	"bytes"
	"time"

	"github.com/berthml/berth"
)

// Program plays the program of every container: it returns the exit code. A
// killed process is gone at once, even if its program goes on; the program
// should return.
type Program func(p *Process) int

// Process is a running container, as its program sees it.
type Process struct {
	Launch berth.Launch

	docker *Docker
	box    *box
}

// Process is the program in an attempt's container; nil without one.
func (d *Docker) Process(attemptID string) *Process {
	d.mu.Lock()
	defer d.mu.Unlock()

	b := d.box[d.Name(attemptID)]
	if b == nil {
		return nil
	}

	return &Process{docker: d, box: b, Launch: b.launch}
}

// Idle is a program that does nothing until SIGTERM: a test prints for it and
// lets it exit.
func Idle(p *Process) int {
	select {
	case <-p.Terminated():
	case <-p.Killed():
	}

	return codeTerminated
}

// Container is the process's container as Docker sees it now.
func (p *Process) Container() berth.Container {
	p.docker.mu.Lock()
	defer p.docker.mu.Unlock()

	return p.box.Container
}

// Exit makes the process exit, even if its program goes on.
func (p *Process) Exit(code int) { p.docker.end(p.box, code) }

// Terminated is closed on SIGTERM.
func (p *Process) Terminated() <-chan struct{} { return p.box.terminated }

// Killed is closed when the process is gone.
func (p *Process) Killed() <-chan struct{} { return p.box.killed }

// Sleep lets time pass and reports whether all of it did, before SIGTERM or the
// end came.
func (p *Process) Sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-p.Terminated():
	case <-p.Killed():
	}

	return false
}

// Rotate drops the log so far, as Docker does with the oldest of a long one.
func (p *Process) Rotate() {
	p.docker.mu.Lock()
	defer p.docker.mu.Unlock()

	p.box.log = nil
}

// Print writes to standard output or standard error. A line is in the log once
// it has ended or is 16 KiB long; a process that is gone prints nothing.
func (p *Process) Print(stream, text string) {
	p.docker.mu.Lock()
	defer p.docker.mu.Unlock()

	if p.box.State != berth.ContainerRunning {
		return
	}

	p.box.partial[stream] = append(p.box.partial[stream], text...)
	p.docker.emit(p.box, stream, false)
}

// PrintAt adds a chunk to the log as it is, with a stamp of the test's own.
func (p *Process) PrintAt(at time.Time, stream, text string) {
	p.docker.mu.Lock()
	defer p.docker.mu.Unlock()

	p.box.stamp = at
	p.box.log = append(p.box.log, berth.LogChunk{Stream: stream, At: at, Data: []byte(text)})
	p.box.wake()
}

// emit moves whole lines to the log, and at the end the rest of a line. Stamps
// are the clock's, made to increase.
func (d *Docker) emit(b *box, stream string, end bool) {
	for data := b.partial[stream]; len(data) > 0; data = b.partial[stream] {
		size := bytes.IndexByte(data, '\n') + 1

		switch {
		case size > chunkBytes || size == 0 && len(data) >= chunkBytes:
			size = chunkBytes
		case size == 0 && end:
			size = len(data)
		case size == 0:
			return
		}

		at := time.Now().UTC()
		if !at.After(b.stamp) {
			at = b.stamp.Add(1)
		}

		b.stamp = at
		b.log = append(b.log, berth.LogChunk{Stream: stream, At: at, Data: data[:size:size]})
		b.partial[stream] = data[size:]
		b.wake()
	}
}
