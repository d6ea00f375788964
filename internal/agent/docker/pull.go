package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/berthml/berth"
)

const (
	// pullLongest bounds one pull: 60 GiB at 17 MiB/s. It is below what Temporal grants an
	// attempt beyond max_trial_duration (workflows, runMargin).
	pullLongest = time.Hour
	// pullStall is the idle timeout of a pull: Docker reports each 512 KiB that it downloads
	// or unpacks.
	pullStall = 5 * time.Minute
	// pullPause is how long a failed pull answers further calls, so that the trials of a host
	// do not all ask a registry that refuses them. Docker itself tries a layer five times.
	pullPause = 10 * time.Second
	// pullTold is how often callers hear of the progress.
	pullTold = time.Second
	// pullBegins is the progress while no layer has begun.
	pullBegins = "asking the registry"
)

// PullConfig are the settings of pulls. Zero values are defaults.
type PullConfig struct {
	Stall   time.Duration // a pull without progress for so long has failed; default 5 min
	Longest time.Duration // of one pull; default 1 hour
	// Room returns what Docker's disk has free beyond its headroom, in bytes. Nil = not looked at.
	Room func() (int64, error)
}

// Pulls gets images from registries, one pull of an image at a time: further callers
// join it. A pull ends when its last caller leaves.
type Pulls struct {
	docker *Docker
	config PullConfig

	mu      sync.Mutex
	flights map[string]*flight // the newest pull of each image
}

// flight is a pull that goes on, or that has ended.
type flight struct {
	callers  int // guarded by Pulls.mu
	cancel   context.CancelFunc
	progress atomic.Pointer[string]

	done  chan struct{} // closed when err and ended are set
	err   error
	ended time.Time
}

// NewPulls returns the pulls of a host.
func NewPulls(d *Docker, config PullConfig) *Pulls {
	config.Stall, config.Longest = cmp.Or(config.Stall, pullStall), cmp.Or(config.Longest, pullLongest)

	return &Pulls{docker: d, config: config, flights: make(map[string]*flight)}
}

// Pull gets an image by repository@sha256:…, and tells the progress every second. A
// pull that failed within pullPause is not tried again: Pull returns its error.
// Errors: *berth.PullError; invalid when the image is named by a tag or by an ID
// alone; unavailable when Docker does not answer; ctx's cause.
func (p *Pulls) Pull(ctx context.Context, image string, told func(progress string)) error {
	f := p.join(ctx, image)
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

// join returns the pull of an image that goes on or failed within pullPause, or begins one.
func (p *Pulls) join(ctx context.Context, image string) *flight {
	p.mu.Lock()
	defer p.mu.Unlock()

	f := p.flights[image]
	if f == nil || f.over() && (f.err == nil || time.Since(f.ended) >= pullPause) {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives its first caller
		f = &flight{cancel: cancel, done: make(chan struct{})}
		f.progress.Store(new(pullBegins))
		p.flights[image] = f

		go func() { // leave waits for it
			f.err = p.docker.pull(own, image, p.config, func(progress string) { f.progress.Store(&progress) })
			f.ended = time.Now()
			close(f.done)
		}()
	}

	f.callers++

	return f
}

// leave ends a pull with its last caller.
func (p *Pulls) leave(image string, f *flight) {
	p.mu.Lock()
	f.callers--
	last := f.callers == 0

	if last && !f.over() {
		delete(p.flights, image)
	}
	p.mu.Unlock()

	if last {
		f.cancel()
		<-f.done
	}
}

func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// pull gets an image by its digest. Errors: as Pulls.Pull.
func (d *Docker) pull(ctx context.Context, ref string, config PullConfig, told func(progress string)) error {
	named, err := named(ref)
	if err != nil {
		return err
	}

	if _, pinned := named.(reference.Digested); !pinned {
		return berth.Errorf(berth.KindInvalid, "image %q has no registry's digest, so it cannot be pulled: push it to a registry and submit the sweep again, "+
			"or bring it to this host by docker save and docker load", ref)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, config.Longest, pullErrorOf(named, berth.PullTimeout, fmt.Sprintf("it was not here after %s", config.Longest)))
	defer cancel()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	stalled := time.AfterFunc(config.Stall, func() { // a registry may be silent from the start
		stop(pullErrorOf(named, berth.PullTimeout, fmt.Sprintf("no byte of it arrived from %s for %s", reference.Domain(named), config.Stall)))
	})
	defer stalled.Stop()

	err = d.fetch(ctx, named, func(progress string) {
		stalled.Reset(config.Stall)
		told(progress)

		if config.Room == nil {
			return
		}

		if room, err := config.Room(); err == nil && room < 0 {
			stop(pullErrorOf(named, berth.PullDiskFull, "Docker's disk has less than its --disk-headroom free"))
		}
	})
	if why, ours := errors.AsType[*berth.PullError](context.Cause(ctx)); ours && err != nil {
		return why
	}

	return err
}

// fetch asks the registry about an image, and has Docker pull it. Errors:
// *berth.PullError; unavailable when Docker does not answer; ctx's cause.
func (d *Docker) fetch(ctx context.Context, named reference.Named, moved func(progress string)) error {
	_, credentials, err := d.inspectRegistry(ctx, named)
	if err != nil {
		return err
	}

	stream, err := d.long.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: credentials})
	if err == nil {
		err = errors.Join(readPull(stream, moved), stream.Close())
	}

	if err != nil {
		return d.pullError(ctx, named, err)
	}

	return nil
}

// errStream says that Docker's answer broke off, as it does when Docker is restarted.
var errStream = errors.New("reading how the pull goes")

// readPull reads to the end of a pull, and tells how much of the layers that have begun
// is downloaded, whenever the pull came further: a retry is no progress. Errors:
// errStream; what Docker says.
func readPull(stream io.Reader, moved func(progress string)) error {
	type line struct {
		Status   string `json:"status"`
		ID       string `json:"id"`
		Progress struct {
			Current int64 `json:"current"`
			Total   int64 `json:"total"`
		} `json:"progressDetail"` //nolint:tagliatelle // Docker's word
		Error string `json:"error"`
	}

	lines, last, downloads := json.NewDecoder(stream), make(map[string]line), make(map[string]line)

	for {
		var now line

		switch err := lines.Decode(&now); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errStream, err)
		case now.Error != "":
			return errors.New(now.Error)
		case now == last[now.ID] || strings.HasPrefix(now.Status, "Retrying"):
			continue
		}

		last[now.ID] = now

		if now.Status == "Downloading" {
			downloads[now.ID] = now
		} else if begun, found := downloads[now.ID]; found { // that layer is here
			begun.Progress.Current = begun.Progress.Total
			downloads[now.ID] = begun
		}

		var done, total int64
		for _, layer := range downloads {
			done, total = done+layer.Progress.Current, total+layer.Progress.Total
		}

		text := pullBegins
		if total > 0 {
			text = berth.BytesText(done) + " of " + berth.BytesText(total)
		}

		moved(text)
	}
}
