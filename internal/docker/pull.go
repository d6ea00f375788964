package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/berthml/berth"
)

// pullRoomFactor is what a pull takes of the disk for each byte of the compressed
// layers that are not there yet: the archive itself, and what it unpacks to, which is
// about 2.5 times as much for images with Python and its libraries (gzip).
const pullRoomFactor = 3.5

// sizesTimeout is how long this process asks a registry for the sizes of layers. Where
// only Docker's mirror reaches it, there may be no answer, and the pull goes on without.
const sizesTimeout = 30 * time.Second

// The reasons why Berth breaks a pull off.
var (
	errPullStalled = errors.New("the pull stands still")
	errPullNoRoom  = errors.New("the disk is full")
)

// pull gets an image by its digest. Errors: as Pulls.Pull.
func (d *Docker) pull(ctx context.Context, ref string, config PullConfig, told func(berth.PullProgress)) error {
	named, err := named(ref)
	if err != nil {
		return err
	}

	if _, pinned := named.(reference.Digested); !pinned {
		return berth.Errorf(berth.KindInvalid, "image %q has no registry's digest, so it cannot be pulled: push it to a registry and submit the sweep again, "+
			"or bring it to this host by docker save and docker load", ref)
	}

	began := time.Now()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	stalled := time.AfterFunc(config.Stall, func() { stop(errPullStalled) }) // a registry may be silent from the start
	defer stalled.Stop()

	watch := &pullWatch{layers: make(map[string]layerPull), told: told, moved: func() {
		stalled.Reset(config.Stall)

		if config.Room != nil {
			if room, err := config.Room(); err == nil && room < 0 {
				stop(errPullNoRoom)
			}
		}
	}}

	err = d.fetch(ctx, named, config, watch)

	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errPullStalled):
		return pullErrorOf(named, berth.PullStalled, fmt.Sprintf("no byte of it arrived from %s for %s", reference.Domain(named), config.Stall))
	case errors.Is(context.Cause(ctx), errPullNoRoom):
		return pullErrorOf(named, berth.PullDiskFull, "Docker's disk has less than its --disk-headroom free")
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // bytes came, else it had stalled
		return pullErrorOf(named, berth.PullSlow, fmt.Sprintf("it was not here after %s: %s", time.Since(began).Round(time.Second), watch.progress().Text()))
	default:
		return err
	}
}

// fetch asks the registry about an image, and has Docker pull it. Errors:
// *berth.PullError; unavailable when Docker does not answer; ctx's cause.
func (d *Docker) fetch(ctx context.Context, named reference.Named, config PullConfig, watch *pullWatch) error {
	have, err := login(ctx, named)
	if err != nil {
		return err
	}

	if _, err := d.inspectRegistry(ctx, named, have); err != nil {
		return err
	}

	total, err := d.missingBytes(ctx, named, have)
	if err == nil {
		watch.total = total
		watch.told(watch.progress())

		if err := checkRoom(named, total, config); err != nil {
			return err
		}
	} // else the disk is looked at meanwhile

	watch.moved() // the registry has answered

	credentials, err := encoded(named, have)
	if err != nil {
		return err
	}

	stream, err := d.long.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: credentials})
	if err == nil {
		err = errors.Join(watch.read(stream), stream.Close())
	}

	if err != nil {
		return d.pullError(ctx, named, err)
	}

	return nil
}

// checkRoom refuses a pull for which the disk has no room.
func checkRoom(image reference.Named, missing int64, config PullConfig) error {
	if config.admit == nil {
		return nil
	}

	need := int64(float64(missing) * pullRoomFactor)

	have, ok := config.admit(need)
	if ok {
		return nil
	}

	return pullErrorOf(image, berth.PullDiskFull, fmt.Sprintf(
		"it needs about %s of Docker's disk (%s compressed, times %g), which has %s free beyond --disk-headroom and what other pulls still need",
		berth.BytesText(need), berth.BytesText(missing), pullRoomFactor, berth.BytesText(max(have, 0))))
}

// missingBytes is what the layers of an image that this host lacks have compressed.
func (d *Docker) missingBytes(ctx context.Context, ref reference.Named, have authn.AuthConfig) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sizesTimeout)
	defer cancel()

	host, err := d.short.ServerVersion(ctx)
	if err != nil {
		return 0, d.translate(ctx, err, "asking Docker for its version")
	}

	sizes, unpacked, err := layers(ctx, ref, have, host.Os, host.Arch)
	if err != nil {
		return 0, err
	}

	var total int64

	for i := d.layersHere(ctx, unpacked); i < len(sizes); i++ {
		total += sizes[i]
	}

	return total, nil
}

// layersHere is how many of the first layers of an image this host has, as part of
// other images. A layer counts only with all below it.
func (d *Docker) layersHere(ctx context.Context, layers []string) (most int) {
	all, err := d.short.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return 0
	}

	for _, one := range all {
		got, err := d.short.ImageInspect(ctx, one.ID)
		if err != nil {
			continue
		}

		same := 0
		for same < min(len(got.RootFS.Layers), len(layers)) && got.RootFS.Layers[same] == layers[same] {
			same++
		}

		most = max(most, same)
	}

	return most
}

// pullWatch reads what Docker says of a pull.
type pullWatch struct {
	total  int64 // to download; 0 = not known
	layers map[string]layerPull
	told   func(berth.PullProgress)
	moved  func() // something arrived, or was unpacked
}

// layerPull is how far a layer is. It is downloaded first, then unpacked.
type layerPull struct {
	current, size int64 // of the download
	done          bool  // downloaded
	unpacked      int64 // compressed bytes
	there         bool
	retrying      bool // Docker waits, and then downloads it anew
}

func (l layerPull) unpackedBytes() int64 {
	if l.there {
		return l.current
	}

	return min(l.unpacked, l.current)
}

// pullLine is a line of Docker's answer.
type pullLine struct {
	Status   string `json:"status"`
	ID       string `json:"id"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"` //nolint:tagliatelle // Docker's word
	Error string `json:"error"`
}

// streamError says that Docker's answer broke off, as it does when Docker is restarted.
type streamError struct{ err error }

func (e *streamError) Error() string { return "reading how the pull goes: " + e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

// read reads to the end of the pull. Errors: *streamError; what Docker says of the pull.
func (w *pullWatch) read(stream io.Reader) error {
	lines := json.NewDecoder(stream)

	for {
		var line pullLine

		err := lines.Decode(&line)

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &streamError{err}
		case line.Error != "":
			return errors.New(line.Error)
		}

		if w.take(line) {
			w.moved()
		}

		w.told(w.progress())
	}
}

// take takes a line in. It reports whether the pull came further: that Docker waits
// or tries again is no progress.
func (w *pullWatch) take(line pullLine) bool {
	l := w.layers[line.ID]
	before := l

	switch line.Status {
	case "Downloading":
		l.current, l.size, l.retrying = line.Progress.Current, max(line.Progress.Total, l.size), false
	case "Verifying Checksum", "Download complete":
		l.current, l.done = max(l.size, l.current), true
	case "Extracting":
		l.unpacked, l.done = line.Progress.Current, true
	case "Pull complete", "Already exists":
		l.done, l.there = true, true
	case "Pulling fs layer", "Waiting":
	default:
		if strings.HasPrefix(line.Status, "Retrying") {
			w.layers[line.ID] = layerPull{current: l.current, size: l.size, retrying: true}
		}

		return false
	}

	w.layers[line.ID] = l

	return l != before
}

func (w *pullWatch) progress() berth.PullProgress {
	p := berth.PullProgress{Unpacking: len(w.layers) > 0}

	var known int64

	for _, l := range w.layers {
		p.DoneBytes += l.current
		known += l.size
		p.UnpackedBytes += l.unpackedBytes()
		p.Unpacking = p.Unpacking && l.done
		p.Retrying = p.Retrying || l.retrying && !l.done
	}

	p.TotalBytes = max(w.total, known)

	return p
}
