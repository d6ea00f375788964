package main

import (
	"context"
	"strconv"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/runtrial"
)

// What --pull says about images that a machine lacks.
const (
	pullMissing = "missing" // they are pulled
	pullNever   = "never"   // a person brings them
)

// images are the images of this machine, and how those that are missing come to it.
// pull is nil where none does.
func (m *machine) images(d *docker.Docker, dockerDir string) (images activities.Images, pull runtrial.PullImage) {
	if m.pull == pullNever {
		return localImages{d}, nil
	}

	pulls := docker.NewPulls(d, docker.PullConfig{Room: func() (int64, error) {
		_, free, err := freeDisks(m.dataDir, dockerDir)

		return free - m.disk, err
	}})

	return d, pulls.Pull
}

// localImages are those of a machine that pulls none.
type localImages struct{ *docker.Docker }

// AskRegistry refuses.
func (localImages) AskRegistry(_ context.Context, ref string) (berth.Image, error) {
	return berth.Image{}, &berth.SpecError{Problems: []berth.Problem{{
		Code: activities.CodeImageMissing, Pointer: "/image",
		Message: "image " + strconv.Quote(ref) + " is on no machine, and they pull none (--pull never); build or pull it there first",
	}}}
}
