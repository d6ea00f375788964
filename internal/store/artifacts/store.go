package artifacts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/s3blob" // opens s3://
	"gocloud.dev/gcerrors"

	"github.com/berthml/berth"
)

const (
	// objectsPrefix is before the names of all objects.
	objectsPrefix = "sha256/"
	// askTimeout bounds one question to the store.
	askTimeout = 30 * time.Second
	// stallTimeout is how long an upload may get no further. It gets on by parts: an
	// uplink of 70 KiB/s sends partsAtOnce of sentAtOnce files in this time.
	stallTimeout = 10 * time.Minute
	// readStallTimeout is how long the store may send no byte of a fetch.
	readStallTimeout = 2 * time.Minute
	// partBytes is a part of an upload to S3, and mostParts how many one may have
	// (Amazon S3, "multipart upload limits": 10,000).
	partBytes = 5 << 20
	mostParts = 9_000
	// partsAtOnce of one object are sent side by side.
	partsAtOnce = 2
)

// ErrChanged is a file whose content changed while it was sent.
var ErrChanged = errors.New("it changed while it was read")

var (
	// errStalled is an upload that got no further for stallTimeout.
	errStalled = errors.New("no part was sent")
	// errReadStalled is a fetch that got no further for readStallTimeout.
	errReadStalled = errors.New("it sent nothing")
)

// Store is where objects are. Make one with Open.
type Store struct {
	bucket       *blob.Bucket
	dir          string // empty = it is remote
	where        string // as a person wrote it, without secrets
	installation string
	marks        Marks
	stall        time.Duration
	readStall    time.Duration
	sync         func(dir string) error
	noted        atomic.Bool // the database knows of the mark
}

// Open opens a directory, and makes a missing one, or a URL of S3. It sends no
// request to S3 yet: see Ready. Errors: invalid, with the text to write.
func Open(ctx context.Context, where, installation string, marks Marks) (*Store, error) {
	dir, remote, err := parse(where)
	if err != nil {
		return nil, err
	}

	s := &Store{dir: dir, where: where, installation: installation, marks: marks, stall: stallTimeout, readStall: readStallTimeout, sync: syncDir}

	if remote != nil {
		s.where = remote.Redacted()
		s.bucket, err = blob.OpenBucket(ctx, remote.String())
	} else if err = os.MkdirAll(dir, 0o700); err == nil { // another process made it with its own permissions
		s.bucket, err = fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, DirFileMode: 0o755, Metadata: fileblob.MetadataDontWrite})
	}

	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "opening --artifacts %q: %w", s.where, err)
	}

	return s, nil
}

// There reports whether a directory exists, which Open would make; only Ready
// asks a remote store. Errors: invalid.
func There(where string) (bool, error) {
	dir, remote, err := parse(where)
	if err != nil || remote != nil {
		return remote != nil, err
	}

	_, err = os.Stat(dir)

	return !errors.Is(err, os.ErrNotExist), nil
}

// parse returns a directory or a URL of S3. Errors: invalid.
func parse(where string) (dir string, remote *url.URL, err error) {
	scheme, _, found := strings.Cut(where, "://")
	if !found {
		dir, err = filepath.Abs(where)
		if where == "" || err != nil {
			return "", nil, berth.Errorf(berth.KindInvalid, "--artifacts %q is no directory; write a path, or a URL such as s3://bucket?region=eu-west-1", where)
		}

		return dir, nil, nil
	}

	u, err := url.Parse(where)
	if err != nil {
		return "", nil, berth.Errorf(berth.KindInvalid, "--artifacts is no URL: %w; write such as s3://bucket?region=eu-west-1", errors.Unwrap(err))
	}

	switch {
	case scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/") && u.RawQuery == "":
		return filepath.Clean(u.Path), nil, nil
	case scheme == "file":
		return "", nil, berth.Errorf(berth.KindInvalid, "--artifacts %q must be file:// and an absolute path, such as file:///srv/berth", u.Redacted())
	case scheme == "s3" && u.Host != "" && strings.Trim(u.Path, "/") == "":
		return "", u, nil
	case scheme == "s3":
		return "", nil, berth.Errorf(berth.KindInvalid, "--artifacts %q must be s3:// and the name of a bucket; a folder in it is written s3://bucket?prefix=folder/", u.Redacted())
	default:
		return "", nil, berth.Errorf(berth.KindInvalid, "--artifacts has the scheme %q; Berth knows directories, file:// and s3://", scheme)
	}
}

// Where is the directory or the URL, without secrets.
func (s *Store) Where() string { return s.where }

// Close gives back what the store holds. Running calls fail.
func (s *Store) Close() error { return s.bucket.Close() }

// failed turns the store's answer into an error.
func (s *Store) failed(doing string, err error) error {
	switch code := gcerrors.Code(err); {
	case err == nil || code == gcerrors.NotFound:
		return berth.Errorf(berth.KindInvalid, "%s the store %q: there is no such bucket; make it, or correct --artifacts", doing, s.where)
	case code == gcerrors.PermissionDenied || errors.Is(err, os.ErrPermission):
		return berth.Errorf(berth.KindInvalid, "%s the store %q: it refuses these credentials, or this user: %w", doing, s.where, err)
	default:
		return berth.Errorf(berth.KindUnavailable, "%s the store %q: %w", doing, s.where, err)
	}
}

// key is the name of an object.
func key(d berth.Digest) string {
	text := d.String()

	return objectsPrefix + text[:2] + "/" + text
}

// Has reports whether the whole object is stored.
func (s *Store) Has(ctx context.Context, d berth.Digest, bytes int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()

	attributes, err := s.bucket.Attributes(ctx, key(d))
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}

	if err != nil {
		return false, s.failed("asking", err)
	}

	return attributes.Size == bytes, nil
}

// Put stores the bytes of r, which must match the digest. The object becomes visible
// when it is whole. It has no time limit while it makes progress. Errors: ErrChanged
// when r has other content; unavailable; any error of r.
func (s *Store) Put(ctx context.Context, d berth.Digest, bytes int64, r io.Reader) error {
	part := max(partBytes, bytes/mostParts+1)
	stall := s.stall * time.Duration(part/partBytes)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // a writer whose context has ended writes nothing

	timer := time.AfterFunc(stall, func() {
		cancel(berth.Errorf(berth.KindUnavailable, "writing to the store %q: %w for %s", s.where, errStalled, stall))
	})
	defer timer.Stop()

	var file *os.File // of a store in a directory

	w, err := s.bucket.NewWriter(ctx, key(d), &blob.WriterOptions{
		ContentType: "application/octet-stream", BufferSize: int(part), MaxConcurrency: partsAtOnce,
		BeforeWrite: func(as func(any) bool) error { as(&file); return nil },
	})
	if err != nil {
		return s.failed("writing to", err)
	}

	sum, source := sha256.New(), &failing{r: readerFunc(func(p []byte) (int, error) {
		timer.Reset(stall)

		return r.Read(p)
	})}

	_, err = io.Copy(w, io.TeeReader(source, sum))

	switch {
	case source.err != nil:
		err = source.err
	case err != nil:
		err = s.failed("writing to", err)
	case berth.Digest(sum.Sum(nil)) != d:
		err = ErrChanged
	case file != nil:
		timer.Stop()      // a disk that flushes its cache reports no parts
		err = file.Sync() // its name must not come to the disk before it
	}

	if err != nil {
		err = orStalled(ctx, err)
		cancel(nil)
		_ = w.Close() // which removes the written part

		return err
	}

	if err := w.Close(); err != nil {
		return orStalled(ctx, s.failed("writing to", err))
	}

	return nil
}

// orStalled returns why an upload, or a fetch, was ended when it got no further, else its error.
func orStalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) || errors.Is(cause, errReadStalled) {
		return cause
	}

	return err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// patient is a reader that ends with its context.
func patient(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}

		return r.Read(p)
	})
}

// failing separates errors of a source from errors of its destination.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}

	return n, err
}

// Read opens length bytes of an object from offset on; a negative length is all
// of the rest. Errors: not_found; unavailable.
func (s *Store) Read(ctx context.Context, d berth.Digest, offset, length int64) (io.ReadCloser, error) {
	r, err := s.bucket.NewRangeReader(ctx, key(d), offset, length, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		if err := s.Ready(ctx); err != nil {
			return nil, err
		}

		return nil, berth.Errorf(berth.KindNotFound, "the store %q has lost the object %s", s.where, d)
	}

	if err != nil {
		return nil, s.failed("reading from", err)
	}

	return r, nil
}

// object is one of the store.
type object struct {
	key    string
	digest berth.Digest
	whole  bool // its name is one of ours; else an upload left it that was killed
	age    time.Duration
}

// list calls fn with pages of objects whose digest begins with a byte.
func (s *Store) list(ctx context.Context, first byte, fn func([]object) error) error {
	const pageRows = 1000

	prefix := fmt.Sprintf("%s%02x/", objectsPrefix, first)

	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := s.bucket.ListPage(ctx, token, pageRows, &blob.ListOptions{Prefix: prefix})
		if err != nil {
			return s.failed("listing", err)
		}

		objects := make([]object, 0, len(page))

		for _, o := range page {
			one := object{key: o.Key, age: time.Since(o.ModTime)}
			one.digest, one.whole = digestOf(strings.TrimPrefix(o.Key, prefix))
			objects = append(objects, one)
		}

		if err := fn(objects); err != nil {
			return err
		}

		token = next
	}

	return nil
}

// remove removes an object; one that is gone is a success.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return s.failed("removing from", err)
	}

	return nil
}
