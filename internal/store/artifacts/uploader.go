package artifacts

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/berthml/berth"
)

// Ledger is the database for an Uploader.
type Ledger interface {
	// SetHostStores notes whether the host stores files.
	SetHostStores(ctx context.Context, hostID string, stores bool) error
	// FilesToStore are ended attempts of the host whose files are to be stored now.
	FilesToStore(ctx context.Context, hostID string, limit int) ([]berth.UnstoredAttempt, error)
	// ClaimFiles names files before they are stored. Errors: not_found when they are not wanted any more.
	ClaimFiles(ctx context.Context, attemptID string, files []berth.Artifact) error
	FilesStored(ctx context.Context, attemptID string, paths []string) error
	SettleFiles(ctx context.Context, attemptID string, o berth.FileOutcome) error
	// NoteFiles says why they could not be stored, for as long as they are not.
	NoteFiles(ctx context.Context, attemptID, problem string) error
	// DeferFiles does the same and has them tried again later, each time twice as late.
	DeferFiles(ctx context.Context, attemptID, problem string) error
}

// Files are the files of attempts on this host.
type Files interface {
	// OpenOutputs opens an attempt's /trial/out. Errors: conflict while it runs;
	// not_found when its directory is missing.
	OpenOutputs(attemptID string) (*os.Root, error)
}

const (
	defaultEvery = 5 * time.Second
	// longestPause is between two looks while the store is down.
	longestPause = 5 * time.Minute
	// attemptsAtOnce is how many attempts one question to the database returns.
	attemptsAtOnce = 100
	// filesAtOnce are named, then stored, together.
	filesAtOnce = 200
	// lostAfter is how long files wait that were below another data directory: time to
	// notice that its disk is not mounted.
	lostAfter = 7 * 24 * time.Hour
	// clockSlack is how far the clock of a machine's files may be behind the database's.
	clockSlack = time.Minute
)

// Uploader stores the files of one host's ended attempts. Its work list is in
// the database, so a killed one goes on at the same place. It delays no result
// and holds no place: the attempts have given both away.
type Uploader struct {
	Ledger Ledger
	Files  Files
	Store  *Store
	HostID string
	// Mark is a file of the data directory, written when the directory was first used.
	// Without it the directory's disk is away, and no file is lost; empty = not asked.
	Mark   string
	Limits Limits
	Every  time.Duration // between two looks; default 5 s
	Log    *slog.Logger
}

// Run stores until ctx ends.
func (u *Uploader) Run(ctx context.Context) error {
	return keepLooking(ctx, u.Every, longestPause, u.Look, func(err error, again time.Duration) {
		u.Log.Warn("storing files of ended attempts", "error", err, "again_in", again)
	})
}

// Look stores all due files. A problem with one attempt does not delay the
// others. Errors: of the store or the database, which may come back.
func (u *Uploader) Look(ctx context.Context) error {
	if err := u.Ledger.SetHostStores(ctx, u.HostID, true); err != nil {
		return err
	}

	if err := cmp.Or(u.Store.Ready(ctx), dataDirAway(u.Mark)); err != nil {
		return u.sayDown(ctx, err)
	}

	for busy := make(map[string]bool); ; {
		list, err := u.Ledger.FilesToStore(ctx, u.HostID, attemptsAtOnce)
		if err != nil {
			return err
		}

		done := 0

		for _, attempt := range list {
			if busy[attempt.ID] {
				continue
			}

			switch err := u.store(ctx, attempt); {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, errBusy), berth.KindOf(err) == berth.KindNotFound: // a limit or a person was faster
				busy[attempt.ID] = true
			case err != nil:
				return u.deferred(ctx, attempt, err)
			default:
				done++
			}
		}

		if done == 0 || len(list) < attemptsAtOnce {
			return nil
		}
	}
}

// sayDown says of the attempt that waits longest why it waits.
func (u *Uploader) sayDown(ctx context.Context, why error) error {
	list, err := u.Ledger.FilesToStore(ctx, u.HostID, 1)
	if err != nil || len(list) == 0 {
		return why
	}

	return errors.Join(why, u.Ledger.NoteFiles(ctx, list[0].ID, why.Error()))
}

// deferred says why an attempt's files were not stored. While the store answers
// the next look begins with another attempt, as the fault may be of this one.
func (u *Uploader) deferred(ctx context.Context, attempt berth.UnstoredAttempt, why error) error {
	if u.Store.Ready(ctx) != nil {
		return errors.Join(why, u.Ledger.NoteFiles(ctx, attempt.ID, why.Error()))
	}

	return errors.Join(why, u.Ledger.DeferFiles(ctx, attempt.ID, why.Error()))
}

var errBusy = errors.New("it runs")

// store stores the files of one attempt and settles it. Errors: errBusy with
// conflict; not_found when its files are not wanted any more; of the store or the
// database.
func (u *Uploader) store(ctx context.Context, attempt berth.UnstoredAttempt) error {
	if attempt.Short {
		return u.Ledger.SettleFiles(ctx, attempt.ID, berth.FileOutcome{State: berth.FilesStored})
	}

	root, err := u.Files.OpenOutputs(attempt.ID)

	switch kind := berth.KindOf(err); {
	case kind == berth.KindConflict:
		return berth.Errorf(berth.KindConflict, "storing files of attempt %s: %w", attempt.ID, errBusy)
	case kind == berth.KindNotFound && !attempt.Ran:
		return u.Ledger.SettleFiles(ctx, attempt.ID, berth.FileOutcome{State: berth.FilesStored})
	case kind == berth.KindNotFound:
		return u.missing(ctx, attempt, err)
	case err != nil:
		return u.Ledger.DeferFiles(ctx, attempt.ID, err.Error())
	}
	defer root.Close() //nolint:errcheck // only read

	var left leftOut

	files, err := scan(ctx, root, u.Limits.orDefault(), &left)
	if err != nil {
		return err
	}

	for len(files) > 0 {
		batch := files[:min(filesAtOnce, len(files))]
		if err := u.storeSome(ctx, attempt.ID, root, batch, &left); err != nil {
			return err
		}

		files = files[len(batch):]
	}

	return u.Ledger.SettleFiles(ctx, attempt.ID, berth.FileOutcome{State: berth.FilesStored, LeftOut: left.count, Reasons: left.first})
}

// missing settles an attempt whose directory is missing. It waits while the
// directory may be on an unmounted disk: the data directory has no mark, or one
// that is younger than the attempt. Errors: unavailable; of the database.
func (u *Uploader) missing(ctx context.Context, attempt berth.UnstoredAttempt, why error) error {
	if err := dataDirAway(u.Mark); err != nil {
		return err
	}

	if mark, err := os.Stat(u.Mark); err == nil && mark.ModTime().Add(clockSlack).After(attempt.EndedAt) && time.Since(attempt.EndedAt) < lostAfter {
		return u.Ledger.DeferFiles(ctx, attempt.ID, "its data directory was another one, or was emptied since; mount the disk that was there within 7 days: "+why.Error())
	}

	return u.Ledger.SettleFiles(ctx, attempt.ID, berth.FileOutcome{
		State: berth.FilesLost, Problem: "its directory is not on its host any more: " + why.Error(),
	})
}

// storeSome names some files and then sends the missing ones.
func (u *Uploader) storeSome(ctx context.Context, attemptID string, root *os.Root, files []found, left *leftOut) error {
	claims := make([]berth.Artifact, 0, len(files))
	sources := make([]source, 0, len(files))

	for _, f := range files {
		artifact, err := f.digest(ctx, root)
		if ctx.Err() != nil {
			return ctx.Err()
		}

		if err != nil {
			left.add(f.path, "it cannot be read: %s", plain(err))

			continue
		}

		claims, sources = append(claims, artifact), append(sources, func() (io.ReadCloser, error) { return f.open(root) })
	}

	if len(claims) == 0 {
		return nil
	}

	if err := u.Ledger.ClaimFiles(ctx, attemptID, claims); err != nil {
		return err
	}

	var (
		stored  []string
		objects []berth.Artifact
		failed  error // of the store
	)

	for i, err := range u.Store.storeAll(ctx, sources, claims) {
		ofFile, ok := errors.AsType[fileError](err)

		switch {
		case ok:
			left.add(claims[i].Path, "it cannot be read: %s", plain(ofFile.error))
		case err != nil:
			failed = cmp.Or(failed, err)
		default:
			stored, objects = append(stored, claims[i].Path), append(objects, claims[i])
		}
	}

	if len(stored) == 0 {
		return failed
	}

	if err := u.Ledger.FilesStored(ctx, attemptID, stored); err != nil {
		return cmp.Or(failed, err)
	}

	for _, artifact := range objects {
		u.Store.shareCopy(root, artifact)
	}

	return failed
}
