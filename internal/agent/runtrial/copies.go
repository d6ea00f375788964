package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/berthml/berth"
)

// FetchObject writes an object of the store to w, and checks it: after an error, nothing there
// counts. Errors: not_found when it is gone; berth.ErrDamaged; unavailable; of w, which have no kind.
type FetchObject func(ctx context.Context, d berth.Digest, bytes int64, w io.Writer) error

// parting ends the name of a copy while it is fetched.
const parting = ".part"

// copiesDir has copies of outputs of stages that other hosts made, by their attempts.
func (e *Executor) copiesDir() string { return filepath.Join(e.config.DataDir, "stages") }

func (e *Executor) copyDirs(attemptID string) dirs {
	dir := filepath.Join(e.copiesDir(), attemptID)

	return dirs{attempt: dir, out: filepath.Join(dir, "out")}
}

// copyLock is held while the copy of an output is looked at, fetched or removed.
func (e *Executor) copyLock(attemptID string) *semaphore.Weighted {
	lock, _ := e.copyLocks.LoadOrStore(attemptID, semaphore.NewWeighted(1))

	return lock.(*semaphore.Weighted) //nolint:forcetypeassert // it is one
}

// output returns where an output of an earlier stage is whole on this host: where its stage
// wrote it, or in a copy, which is fetched from the store once for all trials.
// Errors: invalid when it is whole nowhere; the errors of fetchOutput.
func (r *run) output(ctx context.Context, input berth.StageInput) (dir string, err error) {
	lock := r.copyLock(input.AttemptID)
	if err := lock.Acquire(ctx, 1); err != nil {
		return "", err
	}
	defer lock.Release(1)

	made := r.Executor.dirs(berth.Assignee{Attempt: berth.Attempt{ID: input.AttemptID}})

	why := r.damage(made)
	if why == "" {
		return made.out, nil
	}

	if input.HostID == r.who.Attempt.HostID {
		r.log.Warn("the output of a stage is damaged", "stage", input.Name, "attempt", input.AttemptID, "why", why)
	}

	copied := r.copyDirs(input.AttemptID)
	if r.damage(copied) == "" {
		return copied.out, nil
	}

	if r.config.Fetch == nil || !input.Stored {
		return "", berth.Errorf(berth.KindInvalid, "%s", why)
	}

	return copied.out, r.fetchPatiently(ctx, input, copied)
}

const (
	// fetchPatience is how long an attempt waits for a store that does not answer, before it gives
	// its place back.
	fetchPatience = 15 * time.Minute
	fetchPause    = 5 * time.Second
)

// fetchPatiently is fetchOutput that waits for a store that is away, and says so.
func (r *run) fetchPatiently(ctx context.Context, input berth.StageInput, to dirs) error {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	note := &waitNote{run: r, fenced: lose}
	defer func() { note.say(context.WithoutCancel(ctx), "") }()

	for giveUp := time.Now().Add(fetchPatience); ; {
		err := r.fetchOutput(ctx, input, to)
		if berth.KindOf(err) != berth.KindUnavailable || time.Now().After(giveUp) {
			return err
		}

		note.say(ctx, "waits for the output of stage "+input.Name+": "+err.Error())

		select {
		case <-time.After(fetchPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fetchOutput makes a copy of an output from the store. Errors: invalid when the store does not
// have it whole; exhausted; unavailable; of the disk, which have no kind.
func (r *run) fetchOutput(ctx context.Context, input berth.StageInput, to dirs) error {
	files, err := r.storedFiles(ctx, input.AttemptID)
	if err != nil {
		return err
	}

	total := int64(0)
	for _, file := range files {
		total += file.Bytes
	}

	if err := r.headroom(total, "fetching the output of stage "+input.Name); err != nil {
		return err
	}

	parts := dirs{attempt: to.attempt + parting, out: filepath.Join(to.attempt+parting, "out")}

	if err := errors.Join(os.RemoveAll(parts.attempt), os.MkdirAll(parts.out, 0o755), os.Chmod(r.copiesDir(), 0o700)); err != nil { //nolint:gosec // G301: the job's user reads it, below a directory that only Docker enters
		return fmt.Errorf("making directory: %w", err)
	}

	root, err := os.OpenRoot(parts.out)
	if err != nil {
		return fmt.Errorf("opening directory: %w", err)
	}
	defer root.Close() //nolint:errcheck // all files are closed

	for _, file := range files {
		if err := r.fetchFile(ctx, root, file); err != nil {
			return err
		}
	}

	if err := writeJSON(filepath.Join(parts.attempt, manifestName), "manifest", files); err != nil {
		return err
	}

	if err := errors.Join(os.RemoveAll(to.attempt), os.Rename(parts.attempt, to.attempt)); err != nil {
		return fmt.Errorf("putting an output in its place: %w", err)
	}

	r.whole.Store(to.attempt, time.Now()) // each file was compared with its SHA-256
	r.log.Info("fetched the output of a stage", "stage", input.Name, "attempt", input.AttemptID, "bytes", total)

	return nil
}

// storedFiles are the files of an output, by path.
func (r *run) storedFiles(ctx context.Context, attemptID string) (files []outputFile, err error) {
	const atOnce = 1000

	for after := ""; ; {
		page, err := r.records.ListFiles(ctx, attemptID, after, atOnce)
		if err != nil {
			return nil, err
		}

		for _, file := range page {
			if after = file.Path; file.Path != metricsName {
				files = append(files, outputFile{Path: file.Path, Bytes: file.Bytes, SHA256: file.Digest})
			}
		}

		if len(page) < atOnce {
			return files, nil
		}
	}
}

func (r *run) fetchFile(ctx context.Context, root *os.Root, file outputFile) error {
	if err := root.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	to, err := root.OpenFile(file.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("making file: %w", err)
	}

	err = r.config.Fetch(ctx, file.SHA256, file.Bytes, to)
	if closed := to.Close(); err == nil {
		err = closed
	}

	if berth.KindOf(err) == berth.KindNotFound || errors.Is(err, berth.ErrDamaged) {
		return berth.Errorf(berth.KindInvalid, "%s is not whole in the store: %w", file.Path, err)
	}

	return err
}

// RemoveCopies removes the copies of outputs that no unfinished trial needs.
func (e *Executor) RemoveCopies(ctx context.Context) error {
	entries, err := os.ReadDir(e.copiesDir())
	if err != nil || len(entries) == 0 {
		return ignoreNotExist(err)
	}

	var all error

	for _, entry := range entries {
		all = errors.Join(all, e.removeCopy(ctx, entry.Name()))
	}

	return all
}

// removeCopy removes a copy, or the parts of one. The ledger is asked under the lock: a trial
// that mounts the copy either has its lease by now, or comes later and finds none.
func (e *Executor) removeCopy(ctx context.Context, name string) error {
	id := strings.TrimSuffix(name, parting)

	lock := e.copyLock(id)
	if !lock.TryAcquire(1) {
		return nil // a trial is at it, maybe for long
	}
	defer lock.Release(1)

	held, err := e.records.HeldOutputs(ctx, []string{id})
	if err != nil || slices.Contains(held, id) {
		return err
	}

	dir := filepath.Join(e.copiesDir(), name)
	e.whole.Delete(dir)

	return os.RemoveAll(dir)
}
