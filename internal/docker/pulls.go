package docker

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthml/berth"
)

const (
	// pullLongest bounds one pull: 60 GiB at 17 MiB/s. It is below what Temporal grants an
	// attempt beyond max_trial_duration (workflows, runMargin).
	pullLongest = time.Hour
	// pullStall is how long a pull may go without a byte.
	pullStall = 5 * time.Minute
	// pullPauseFirst is the pause after a pull that failed; each further one is twice as
	// long, up to pullPauseLongest. Whoever asks meanwhile gets the same error.
	pullPauseFirst   = 2 * time.Second
	pullPauseLongest = time.Minute
	// pullFailureKept is how long a failure that nobody asked about again counts.
	pullFailureKept = 10 * time.Minute
	// pullTold is how often those who wait hear of the progress.
	pullTold = time.Second
)

// PullConfig are the settings of pulls. Zero values are defaults.
type PullConfig struct {
	Stall time.Duration // without a byte, a pull has failed; default 5 min
	// Room returns what Docker's disk has free beyond its headroom, in bytes. Nil = not
	// known, and not looked at.
	Room func() (int64, error)

	// admit takes the bytes that a pull will write. It returns what the disk has for it,
	// and whether that is enough. Nil = not looked at.
	admit func(need int64) (have int64, ok bool)
}

// Pulls gets images from registries, one pull of an image at a time: whoever asks
// for it meanwhile waits for the same pull. A pull goes on for as long as somebody
// waits for it.
type Pulls struct {
	docker *Docker
	config PullConfig

	mu     sync.Mutex
	going  map[string]*flight
	failed map[string]pullFailure
}

// flight is a pull that goes on.
type flight struct {
	waiting  int // guarded by Pulls.mu
	cancel   context.CancelFunc
	done     chan struct{} // closed when err is there
	err      error
	progress atomic.Pointer[berth.PullProgress]
	admitted bool // it counts on room on the disk; guarded by Pulls.mu
}

// left is what a pull will still write, in bytes.
func (f *flight) left() int64 {
	p := f.progress.Load()

	return max(int64(float64(p.TotalBytes)*pullRoomFactor-float64(p.UnpackedBytes)*(pullRoomFactor-1))-p.DoneBytes, 0)
}

// pullFailure is why the last pull of an image failed.
type pullFailure struct {
	err   error
	at    time.Time
	pause time.Duration // before the next one
}

// NewPulls returns the pulls of a host.
func NewPulls(d *Docker, config PullConfig) *Pulls {
	if config.Stall <= 0 {
		config.Stall = pullStall
	}

	return &Pulls{docker: d, config: config, going: make(map[string]*flight), failed: make(map[string]pullFailure)}
}

// Pull gets an image by repository@sha256:…, and tells the progress every second. A
// pull that failed a moment ago is not tried again yet: its error is returned at
// once. Errors: *berth.PullError; invalid when the image is named by a tag or by an
// ID alone; unavailable when Docker does not answer; ctx's cause.
func (p *Pulls) Pull(ctx context.Context, image string, told func(berth.PullProgress)) error {
	f, err := p.join(ctx, image)
	if err != nil {
		return err
	}
	defer p.leave(image, f)

	ticker := time.NewTicker(pullTold)
	defer ticker.Stop()

	for {
		select {
		case <-f.done:
			return f.err
		case <-ticker.C:
			told(*f.progress.Load())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join returns the pull of an image that goes on, or begins one. Errors: that of the
// last one, in the pause after it.
func (p *Pulls) join(ctx context.Context, image string) (*flight, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if f := p.going[image]; f != nil {
		f.waiting++

		return f, nil
	}

	maps.DeleteFunc(p.failed, func(_ string, f pullFailure) bool { return time.Since(f.at) > pullFailureKept })

	if f, found := p.failed[image]; found && time.Since(f.at) < f.pause {
		return nil, f.err
	}

	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullLongest) // not only the first waits for it
	f := &flight{waiting: 1, cancel: cancel, done: make(chan struct{})}
	f.progress.Store(&berth.PullProgress{})
	p.going[image] = f

	go p.fly(own, image, f) // leave waits for it

	return f, nil
}

// fly pulls, and keeps what came of it.
func (p *Pulls) fly(ctx context.Context, image string, f *flight) {
	defer f.cancel()

	config := p.config
	if config.Room != nil {
		config.admit = func(need int64) (int64, bool) { return p.admit(f, need) }
	}

	f.err = p.docker.pull(ctx, image, config, func(progress berth.PullProgress) { f.progress.Store(&progress) })

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.going[image] == f { // else all left
		delete(p.going, image)

		if f.err == nil {
			delete(p.failed, image)
		} else {
			pause := min(max(2*p.failed[image].pause, pullPauseFirst), pullPauseLongest)
			p.failed[image] = pullFailure{err: f.err, at: time.Now(), pause: pause}
		}
	}

	close(f.done)
}

// admit lets a pull begin where the disk has room for it beside what the pulls that go on
// will still write. A disk that cannot be asked stops none.
func (p *Pulls) admit(f *flight, need int64) (have int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	have, err := p.config.Room()

	for _, other := range p.going {
		if other != f && other.admitted {
			have -= other.left()
		}
	}

	f.admitted = err != nil || need <= have

	return have, f.admitted
}

// leave ends a pull for which nobody waits any more.
func (p *Pulls) leave(image string, f *flight) {
	p.mu.Lock()
	f.waiting--
	last := f.waiting == 0

	if last && p.going[image] == f {
		delete(p.going, image)
	}
	p.mu.Unlock()

	if last {
		f.cancel()
		<-f.done
	}
}
