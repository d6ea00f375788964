package artifacts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berthml/berth"
)

// Restore writes a checkpoint's archive from the store to a file, checks its SHA-256, and
// unpacks it below root, which is empty. It calls told with the bytes that have arrived.
// Errors: not_found when the object is gone; berth.ErrDamaged when it differs from its
// name; unavailable, also while the store refuses the credentials; of the disk.
func (s *Store) Restore(ctx context.Context, of berth.StoredCheckpoint, archive *os.File, root *os.Root, told func(bytes int64)) error {
	if err := s.fetch(ctx, of, archive, told); err != nil {
		err = fmt.Errorf("fetching a checkpoint: %w", err)
		if berth.KindOf(err) == berth.KindInvalid && !errors.Is(err, berth.ErrDamaged) { // a person must change something; the object may be whole
			err = berth.Errorf(berth.KindUnavailable, "%w", err)
		}

		return err
	}

	return unpack(ctx, io.NewSectionReader(archive, 0, of.Bytes), root)
}

// fetch writes the whole archive to a file.
func (s *Store) fetch(outer context.Context, of berth.StoredCheckpoint, archive *os.File, told func(bytes int64)) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)

	timer := time.AfterFunc(s.readStall, func() {
		cancel(berth.Errorf(berth.KindUnavailable, "reading from the store %q: %w for %s", s.where, errReadStalled, s.readStall))
	})
	defer timer.Stop()

	r, err := s.Read(ctx, of.Digest, 0, -1)
	if err != nil {
		return orStalled(ctx, err)
	}
	defer r.Close() //nolint:errcheck // only read

	arrived := int64(0)
	timed := readerFunc(func(p []byte) (int, error) { // the timer does not run while the data is written
		timer.Reset(s.readStall)
		defer timer.Stop()

		n, err := r.Read(p)
		arrived += int64(n)
		told(arrived)

		return n, err
	})

	sum := sha256.New()
	source := &failing{r: patient(ctx, io.LimitReader(timed, of.Bytes+1))}
	n, err := io.Copy(io.MultiWriter(archive, sum), source)

	switch {
	case source.err != nil && outer.Err() != nil:
		return outer.Err()
	case source.err != nil:
		return orStalled(ctx, s.failed("reading from", source.err))
	case err != nil:
		return err
	case n != of.Bytes || berth.Digest(sum.Sum(nil)) != of.Digest:
		return damaged("the object %s in the store %q is damaged", of.Digest, s.where)
	default:
		return nil
	}
}
