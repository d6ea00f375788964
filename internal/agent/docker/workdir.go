package docker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/berthml/berth"
)

// readsKept is how long a container that is made to read an image, and never started, may
// be there: a worker that was killed left an older one.
const readsKept = 10 * time.Minute

// ReadWorkdir reads a directory of an image; an empty dir is the image's own
// working directory. It returns where that is, links resolved, and its content as
// a tar archive below a directory of its name. Errors: *berth.StartError when the
// image is not there; not_found when the directory is not; unavailable.
func (d *Docker) ReadWorkdir(ctx context.Context, ref, dir string) (string, io.ReadCloser, error) {
	image, err := d.resolve(ctx, ref)
	if err != nil {
		return "", nil, err
	}

	dir = path.Clean("/" + cmp.Or(dir, image.Workdir))
	if dir == "/" { // all of the image
		return dir, http.NoBody, nil
	}

	d.discardOld(ctx)

	made, err := d.long.ContainerCreate(ctx, &container.Config{
		Image: ref, Entrypoint: []string{"/"}, Labels: lookLabels(readsKept),
	}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		return dir, nil, d.translate(ctx, err, "making a container to read image %q", ref)
	}

	content, where, err := d.readDir(ctx, made.ID, dir)
	if err != nil {
		return dir, nil, errors.Join(err, d.Remove(context.WithoutCancel(ctx), made.ID))
	}

	return where, reader{content, func() error { return d.Remove(context.WithoutCancel(ctx), made.ID) }}, nil
}

// readDir reads a directory of a container, where a link leads.
func (d *Docker) readDir(ctx context.Context, id, dir string) (io.ReadCloser, string, error) {
	for range 2 {
		content, stat, err := d.long.CopyFromContainer(ctx, id, dir)
		if err != nil && strings.Contains(err.Error(), "No such container") { // another process removed the unused container
			return nil, dir, berth.Errorf(berth.KindUnavailable, "reading directory %s: %w", dir, err)
		}

		if err != nil {
			return nil, dir, d.translate(ctx, err, "reading directory %s", dir)
		}

		if stat.Mode.IsDir() {
			return content, dir, nil
		}

		if err := content.Close(); err != nil {
			return nil, dir, d.translate(ctx, err, "reading directory %s", dir)
		}

		if stat.LinkTarget == "" {
			break
		}

		dir = stat.LinkTarget
	}

	return nil, dir, berth.Errorf(berth.KindNotFound, "%s is no directory", dir)
}

// reader removes its container when it is closed.
type reader struct {
	io.ReadCloser

	remove func() error
}

func (r reader) Close() error { return errors.Join(r.ReadCloser.Close(), r.remove()) }

// Entrypoint is an image's own. Errors: *berth.StartError when the image is not there;
// unavailable.
func (d *Docker) Entrypoint(ctx context.Context, ref string) ([]string, error) {
	image, err := d.resolve(ctx, ref)

	return image.Entrypoint, err
}

// resolve is ResolveImage for a launch. Errors: *berth.StartError; unavailable; internal.
func (d *Docker) resolve(ctx context.Context, ref string) (berth.Image, error) {
	image, err := d.ResolveImage(ctx, ref)

	if spec, ok := errors.AsType[*berth.SpecError](err); ok {
		kind := berth.FailureImageMissing
		if spec.Problems[0].Code == codeImageEnv {
			kind = berth.FailureBadCommand
		}

		return image, &berth.StartError{Kind: kind, Err: berth.Errorf(berth.KindInvalid, "%s", spec.Problems[0].Message)}
	}

	return image, err
}
