package artifacts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berthml/berth"
)

// Restore unpacks a checkpoint's archive from the store below root, which is empty, and checks its
// SHA-256: after an error, nothing below root counts. It calls told with the bytes that have arrived.
// Errors: those of Fetch, and of the disk.
func (s *Store) Restore(ctx context.Context, of berth.StoredCheckpoint, root *os.Root, told func(bytes int64)) error {
	return s.fetch(ctx, of.Digest, of.Bytes, told, func(archive io.Reader) error { return unpack(archive, root) })
}

// Fetch writes an object of the store to w, and checks its SHA-256: after an error, nothing there
// counts. Errors: not_found when the object is gone; berth.ErrDamaged when it differs from its
// name; unavailable, also while the store refuses the credentials; of w.
func (s *Store) Fetch(ctx context.Context, d berth.Digest, bytes int64, w io.Writer) error {
	return s.fetch(ctx, d, bytes, func(int64) {}, func(content io.Reader) error {
		_, err := io.Copy(w, content)

		return err
	})
}

// fetch has use read an object, and checks it.
func (s *Store) fetch(outer context.Context, d berth.Digest, bytes int64, told func(bytes int64), use func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)

	timer := time.AfterFunc(s.readStall, func() {
		cancel(berth.Errorf(berth.KindUnavailable, "reading from the store %q: %w for %s", s.where, errReadStalled, s.readStall))
	})
	defer timer.Stop()

	r, err := s.Read(ctx, d, 0, -1)
	if err != nil {
		return notFetched(orStalled(ctx, err))
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
	source := &failing{r: patient(ctx, io.LimitReader(timed, bytes+1))}
	content := io.TeeReader(source, sum)

	if err = use(content); err == nil {
		_, err = io.Copy(io.Discard, content) // what follows an archive is of no use, but counts
	}

	switch {
	case source.err != nil && outer.Err() != nil:
		return outer.Err()
	case source.err != nil:
		return notFetched(orStalled(ctx, s.failed("reading from", source.err)))
	case err == nil && berth.Digest(sum.Sum(nil)) != d:
		return damaged("the object %s in the store %q is damaged", d, s.where)
	default:
		return err
	}
}

// notFetched makes an error that a person must mend unavailable: the object may be whole.
func notFetched(err error) error {
	if berth.KindOf(err) == berth.KindInvalid {
		return berth.Errorf(berth.KindUnavailable, "fetching from the store: %w", err)
	}

	return fmt.Errorf("fetching from the store: %w", err)
}
