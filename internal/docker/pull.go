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

	"github.com/berthml/berth"
)

// pullRoomFactor is what a pull takes of the disk for each byte of the compressed
// layers that are not there yet: the archive itself, and what it unpacks to, which is
// about 2.5 times as much for images with Python and its libraries (gzip).
const pullRoomFactor = 3.5

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

	if _, err := d.inspectRegistry(ctx, named); err != nil {
		return err
	}

	total, err := d.missingBytes(ctx, named)
	if err == nil {
		told(berth.PullProgress{TotalBytes: total})

		if err := checkRoom(named, total, config.Room); err != nil {
			return err
		}
	} // else the disk is looked at meanwhile

	credentials, err := credentials(ctx, named)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	stalled := time.AfterFunc(config.Stall, func() { stop(errPullStalled) })
	defer stalled.Stop()

	watch := &pullWatch{total: total, layers: make(map[string]layerPull), told: told, moved: func() {
		stalled.Reset(config.Stall)

		if config.Room != nil {
			if room, err := config.Room(); err == nil && room < 0 {
				stop(errPullNoRoom)
			}
		}
	}}

	stream, err := d.long.ImagePull(ctx, named.String(), image.PullOptions{RegistryAuth: credentials})
	if err == nil {
		err = errors.Join(watch.read(stream), stream.Close())
	}

	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errPullStalled):
		return pullErrorOf(named, berth.PullStalled, fmt.Sprintf("no byte of it arrived for %s", config.Stall))
	case errors.Is(context.Cause(ctx), errPullNoRoom):
		return pullErrorOf(named, berth.PullDiskFull, "Docker's disk has less than its --disk-headroom free")
	default:
		return d.pullError(ctx, named, err)
	}
}

// checkRoom refuses a pull for which the disk has no room.
func checkRoom(image reference.Named, missing int64, room func() (int64, error)) error {
	if room == nil {
		return nil
	}

	have, err := room()
	need := int64(float64(missing) * pullRoomFactor)

	if err != nil || need <= have {
		return nil //nolint:nilerr // a disk that cannot be asked stops nothing
	}

	return pullErrorOf(image, berth.PullDiskFull, fmt.Sprintf("it needs about %s of Docker's disk (%s compressed, times %g), which has %s free beyond --disk-headroom",
		berth.BytesText(need), berth.BytesText(missing), pullRoomFactor, berth.BytesText(max(have, 0))))
}

// missingBytes is what the layers of an image that this host lacks have compressed.
func (d *Docker) missingBytes(ctx context.Context, ref reference.Named) (int64, error) {
	host, err := d.short.ServerVersion(ctx)
	if err != nil {
		return 0, d.translate(ctx, err, "asking Docker for its version")
	}

	sizes, unpacked, err := layers(ctx, ref, host.Os, host.Arch)
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

// read reads to the end of the pull. Errors: Docker's own, as it says it.
func (w *pullWatch) read(stream io.Reader) error {
	lines := json.NewDecoder(stream)

	for {
		var line pullLine

		err := lines.Decode(&line)

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading how the pull goes: %w", err)
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
		p.Unpacking = p.Unpacking && l.done
		p.Retrying = p.Retrying || l.retrying && !l.done
	}

	p.TotalBytes = max(w.total, known)

	return p
}
