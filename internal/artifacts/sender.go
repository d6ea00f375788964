package artifacts

import (
	"cmp"
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

// sender sends files of this host to the store.
type sender struct {
	store  *Store
	atOnce int          // files side by side; 0 = sentAtOnce
	alone  atomic.Int64 // Unix time until which one part of one file is sent at a time
}

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

// slow reports whether an upload got no further within aloneFor.
func (s *sender) slow() bool { return time.Now().Unix() < s.alone.Load() }

// sendAll sends files in parallel. After an error of the store the files in
// flight go on, and no other begins.
func (s *sender) sendAll(ctx context.Context, root *os.Root, sources []found, claims []berth.Artifact) []sending {
	var (
		sent  = make([]sending, len(claims))
		group errgroup.Group
		over  atomic.Bool
		parts = 0
	)

	group.SetLimit(cmp.Or(s.atOnce, sentAtOnce))

	if s.slow() {
		parts = 1
		group.SetLimit(1)
	}

	for i := range claims {
		group.Go(func() error {
			if over.Load() {
				return nil
			}

			ofFile, err := s.send(ctx, root, sources[i], claims[i], parts)
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
func (s *sender) send(ctx context.Context, root *os.Root, f found, claim berth.Artifact, parts int) (ofFile, err error) {
	there, err := s.store.Has(ctx, claim.Digest, claim.Bytes)
	if err != nil || there {
		return nil, err
	}

	file := f.held
	if file == nil {
		if file, err = f.open(root); err != nil {
			return err, nil
		}
		defer file.Close() //nolint:errcheck // only read
	}

	source := &failing{r: patient{ctx, io.LimitReader(file, claim.Bytes+1)}}

	err = s.store.put(ctx, claim.Digest, claim.Bytes, source, parts)
	if ctx.Err() == nil && (source.err != nil || errors.Is(err, ErrChanged)) {
		return err, nil
	}

	return nil, err
}
