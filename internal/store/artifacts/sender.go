package artifacts

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

const (
	// sentAtOnce is how many files are sent side by side, each in several parts at once.
	sentAtOnce = 4
	// aloneFor is how long one part of one file is sent at a time after an upload got
	// no further: a slow uplink must not divide itself between many.
	aloneFor = time.Hour
)

// sender sends files and checkpoints of this host to the store.
type sender struct {
	alone atomic.Int64 // Unix time until which one part of one file is sent at a time
}

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

// storeAll sends content in parallel, and has the stored objects survive a power cut. Error:
// the store may have lost the sent objects.
func (s *sender) storeAll(ctx context.Context, store *Store, sources []source, claims []berth.Artifact) ([]sending, error) {
	sent := s.sendAll(ctx, store, sources, claims)

	if err := store.Ready(ctx); err != nil { // its disk may have been lost since: objects may be below the mount point
		return sent, err
	}

	var objects []berth.Artifact

	for i, claim := range claims {
		if sent[i].stored {
			objects = append(objects, claim)
		}
	}

	return sent, store.settle(objects)
}

// sendAll sends files in parallel. After an error of the store the files in
// flight go on, and no other begins.
func (s *sender) sendAll(ctx context.Context, store *Store, sources []source, claims []berth.Artifact) []sending {
	var (
		sent  = make([]sending, len(claims))
		group errgroup.Group
		over  atomic.Bool
		parts = 0
	)

	group.SetLimit(sentAtOnce)

	if time.Now().Unix() < s.alone.Load() {
		parts = 1
		group.SetLimit(1)
	}

	for i := range claims {
		group.Go(func() error {
			if over.Load() {
				return nil
			}

			ofFile, err := send(ctx, store, sources[i], claims[i], parts)
			sent[i] = sending{stored: ofFile == nil && err == nil, ofFile: ofFile, err: err}

			if err != nil {
				over.Store(true)
			}

			return nil
		})
	}

	_ = group.Wait() // each has its own error

	if slices.ContainsFunc(sent, func(one sending) bool { return errors.Is(one.err, errStalled) }) {
		s.alone.Store(time.Now().Add(aloneFor).Unix())
	}

	return sent
}

// send sends a file unless the store has it. ofFile is a problem with the file
// itself.
func send(ctx context.Context, store *Store, open source, claim berth.Artifact, parts int) (ofFile, err error) {
	there, err := store.Has(ctx, claim.Digest, claim.Bytes)
	if err != nil || there {
		return nil, err
	}

	file, err := open()
	if err != nil {
		return err, nil
	}
	defer file.Close() //nolint:errcheck // only read

	content := &failing{r: patient{ctx, io.LimitReader(file, claim.Bytes+1)}}

	err = store.put(ctx, claim.Digest, claim.Bytes, content, parts)
	if ctx.Err() == nil && (content.err != nil || errors.Is(err, ErrChanged)) {
		return err, nil
	}

	return nil, err
}
