package artifacts

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

// sentAtOnce is how many files are sent side by side, each in partsAtOnce parts.
const sentAtOnce = 4

// source opens the content of an object.
type source func() (io.ReadCloser, error)

// dataDirAway returns an error when the disk of the data directory is not mounted,
// by its mark file; nil = it is mounted, or there is no mark.
func dataDirAway(mark string) error {
	if mark == "" {
		return nil
	}

	if _, err := os.Stat(mark); err != nil {
		return berth.Errorf(berth.KindUnavailable, "the data directory has lost its mark, mount its disk: %w", err)
	}

	return nil
}

// fileError is a problem with a file itself, not with the store.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// storeAll sends content in parallel, and has the stored objects survive a power cut. It
// returns an error for each: nil = it is stored; a fileError; an error of the store. After an
// error of the store the files in flight go on, and no other begins.
func (s *Store) storeAll(ctx context.Context, sources []source, claims []berth.Artifact) []error {
	var (
		errs   = make([]error, len(claims))
		group  errgroup.Group
		failed atomic.Pointer[error]
	)

	group.SetLimit(sentAtOnce)

	for i := range claims {
		group.Go(func() error {
			if first := failed.Load(); first != nil {
				errs[i] = *first

				return nil
			}

			errs[i] = s.send(ctx, sources[i], claims[i])
			if _, ofFile := errors.AsType[fileError](errs[i]); errs[i] != nil && !ofFile {
				failed.Store(&errs[i])
			}

			return nil
		})
	}

	_ = group.Wait() // each has its own error

	var objects []berth.Artifact

	for i, claim := range claims {
		if errs[i] == nil {
			objects = append(objects, claim)
		}
	}

	err := s.Ready(ctx) // its disk may have been lost since: objects may be below the mount point
	if err == nil {
		err = s.settle(objects)
	}

	for i := range errs {
		errs[i] = cmp.Or(errs[i], err)
	}

	return errs
}

// send sends a file unless the store has it. Errors: fileError; of the store.
func (s *Store) send(ctx context.Context, open source, claim berth.Artifact) error {
	there, err := s.Has(ctx, claim.Digest, claim.Bytes)
	if err != nil || there {
		return err
	}

	file, err := open()
	if err != nil {
		return fileError{err}
	}
	defer file.Close() //nolint:errcheck // only read

	content := &failing{r: patient(ctx, io.LimitReader(file, claim.Bytes+1))}

	err = s.Put(ctx, claim.Digest, claim.Bytes, content)
	if ctx.Err() == nil && (content.err != nil || errors.Is(err, ErrChanged)) {
		return fileError{err}
	}

	return err
}
