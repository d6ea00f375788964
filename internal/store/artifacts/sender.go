package artifacts

import (
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

// sending is the result of sending one file. All fields are zero when another
// file failed before its turn.
type sending struct {
	stored bool
	ofFile error // a problem with the file itself
	err    error // of the store
}

// storeAll sends content in parallel, and has the stored objects survive a power cut. After
// an error of the store the files in flight go on, and no other begins. Error: the store may
// have lost the sent objects.
func (s *Store) storeAll(ctx context.Context, sources []source, claims []berth.Artifact) ([]sending, error) {
	var (
		sent    = make([]sending, len(claims))
		objects []berth.Artifact
		group   errgroup.Group
		over    atomic.Bool
	)

	group.SetLimit(sentAtOnce)

	for i := range claims {
		group.Go(func() error {
			if over.Load() {
				return nil
			}

			ofFile, err := s.send(ctx, sources[i], claims[i])
			sent[i] = sending{stored: ofFile == nil && err == nil, ofFile: ofFile, err: err}

			if err != nil {
				over.Store(true)
			}

			return nil
		})
	}

	_ = group.Wait() // each has its own error

	if err := s.Ready(ctx); err != nil { // its disk may have been lost since: objects may be below the mount point
		return sent, err
	}

	for i, claim := range claims {
		if sent[i].stored {
			objects = append(objects, claim)
		}
	}

	return sent, s.settle(objects)
}

// send sends a file unless the store has it. ofFile is a problem with the file
// itself.
func (s *Store) send(ctx context.Context, open source, claim berth.Artifact) (ofFile, err error) {
	there, err := s.Has(ctx, claim.Digest, claim.Bytes)
	if err != nil || there {
		return nil, err
	}

	file, err := open()
	if err != nil {
		return err, nil
	}
	defer file.Close() //nolint:errcheck // only read

	content := &failing{r: patient(ctx, io.LimitReader(file, claim.Bytes+1))}

	err = s.Put(ctx, claim.Digest, claim.Bytes, content)
	if ctx.Err() == nil && (content.err != nil || errors.Is(err, ErrChanged)) {
		return err, nil
	}

	return nil, err
}
