package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/store/postgres"
)

// What --pull says about images that a machine lacks.
const (
	pullMissing = "missing" // they are pulled
	pullNever   = "never"   // a person brings them
)

// images are the images of this machine, with the pull of missing ones. pull is nil
// where the machine pulls none.
func (m *machine) images(d *docker.Docker, dockerDir string) (images activities.Images, pull runtrial.PullImage) {
	if m.pull == pullNever {
		return localImages{d}, nil
	}

	pulls := docker.NewPulls(d, docker.PullConfig{Room: func() (int64, error) {
		_, free, err := datadir.FreeDisks(m.gpus.DataDir, dockerDir)

		return free - m.disk, err
	}})

	return d, pulls.Pull
}

// localImages are the images of a machine that pulls none.
type localImages struct{ *docker.Docker }

// AskRegistry refuses.
func (localImages) AskRegistry(_ context.Context, ref string) (berth.Image, error) {
	return berth.Image{}, &berth.SpecError{Problems: []berth.Problem{{
		Code: activities.CodeImageMissing, Pointer: "/image",
		Message: "image " + strconv.Quote(ref) + " is on no machine, and they pull none (--pull never); build or pull it there first",
	}}}
}

// tellImages reports the host's images, and whether it pulls others, until ctx ends.
// Placing goes on without that, so an error is a warning.
func tellImages(ctx context.Context, store *postgres.Store, hostID string, d *docker.Docker, pulls bool, log *slog.Logger) error {
	ticker := time.NewTicker(berth.ImagesToldEvery)
	defer ticker.Stop()

	for {
		names, err := d.ListImages(ctx)
		if err == nil {
			err = store.TellHostImages(ctx, hostID, names, pulls)
		}

		if err != nil && ctx.Err() == nil {
			log.Warn("telling which images this machine has", "error", err)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
