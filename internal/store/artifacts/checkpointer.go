package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

// CheckpointLedger is the database for a Checkpointer.
type CheckpointLedger interface {
	// SetHostCheckpoints notes whether the host stores checkpoints.
	SetHostCheckpoints(ctx context.Context, hostID string, stores bool) error
	// CheckpointsToStore returns ended attempts of the host whose checkpoint their trial still needs.
	CheckpointsToStore(ctx context.Context, hostID string, limit int) ([]berth.AttemptCheckpoint, error)
	// SettleCheckpoint says that the checkpoint of an ended attempt is stored, or why not.
	SettleCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, problem string) error
	// BeginCheckpoint names an archive before it is stored. Errors: fenced when the trial goes on elsewhere, or is over.
	BeginCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.StoredCheckpoint) error
	// FinishCheckpoint makes it the trial's newest, and returns the archives that it replaces. Errors: fenced.
	FinishCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.Digest) (replaced []berth.Digest, err error)

	unnamed
}

// CheckpointFiles are the checkpoints on this host.
type CheckpointFiles interface {
	// OpenCheckpoint opens the directory of an attempt. Errors: not_found.
	OpenCheckpoint(of berth.AttemptCheckpoint) (*os.Root, error)
	// RunningCheckpoints returns the checkpoints of attempts whose containers
	// run.
	RunningCheckpoints() []berth.AttemptCheckpoint
	// Spool makes a temporary file for so many bytes, which goes when it is closed. Errors: exhausted.
	Spool(bytes int64) (*os.File, error)
}

const (
	// longestCheckpointPause is between two looks while the store is down: an attempt
	// on another host may wait for it.
	longestCheckpointPause = time.Minute
	// checkpointsAtOnce is how many attempts one question to the database returns.
	checkpointsAtOnce = 100
	// restlessFor is for how long looks find changes before the log says so.
	restlessFor = 2 * time.Minute
)

// Checkpointer stores the checkpoints of one host's trials, each as one archive: when an
// attempt ends that will run again, and of running attempts from time to time. The store
// keeps the newest one of each trial.
type Checkpointer struct {
	Ledger CheckpointLedger
	Files  CheckpointFiles
	Store  *Store
	HostID string
	Mark   string // as Uploader.Mark
	Limits Limits
	After  time.Duration // how often a running attempt's is stored; 0 = only at its end
	Every  time.Duration // between two looks; default 5 s
	Log    *slog.Logger

	running map[string]*runningCheckpoint // by attempt
}

// runningCheckpoint is the checkpoint of a running attempt.
type runningCheckpoint struct {
	due     time.Time
	seen    []entry // by the last look; nil = none yet
	stored  []entry
	problem string // why it cannot be stored; the log has it
}

// Run stores until ctx ends. A long upload of a running attempt keeps no ended attempt
// waiting, as another host may wait for that one.
func (c *Checkpointer) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)

	for _, look := range []func(context.Context) error{c.LookEnded, c.LookRunning} {
		group.Go(func() error {
			return keepLooking(ctx, c.Every, longestCheckpointPause, look, func(err error, again time.Duration) {
				c.Log.Warn("storing checkpoints", "error", err, "again_in", again)
			})
		})
	}

	return group.Wait()
}

// LookEnded stores the checkpoints of ended attempts. Errors: of the store or the
// database, which may come back.
func (c *Checkpointer) LookEnded(ctx context.Context) error {
	if err := c.Ledger.SetHostCheckpoints(ctx, c.HostID, true); err != nil {
		return err
	}

	list, err := c.Ledger.CheckpointsToStore(ctx, c.HostID, checkpointsAtOnce)
	if err != nil {
		return err
	}

	return c.forEach(ctx, list, c.storeEnded)
}

// LookRunning stores the checkpoints of running attempts that are due. Errors: as of LookEnded.
func (c *Checkpointer) LookRunning(ctx context.Context) error {
	var (
		due   []berth.AttemptCheckpoint
		known = make(map[string]*runningCheckpoint)
	)

	for _, of := range c.Files.RunningCheckpoints() {
		known[of.AttemptID] = cmp.Or(c.running[of.AttemptID], &runningCheckpoint{due: time.Now().Add(c.After)})

		if c.After > 0 && !time.Now().Before(known[of.AttemptID].due) {
			due = append(due, of)
		}
	}

	c.running = known

	return c.forEach(ctx, due, c.storeRunning)
}

// forEach calls do for each attempt. A problem with one attempt does not delay the
// others while the store answers.
func (c *Checkpointer) forEach(ctx context.Context, list []berth.AttemptCheckpoint, do func(context.Context, berth.AttemptCheckpoint) error) (all error) {
	for _, of := range list {
		if err := cmp.Or(ctx.Err(), c.Store.Ready(ctx)); err != nil {
			return errors.Join(all, err)
		}

		if err := do(ctx, of); err != nil {
			all = errors.Join(all, fmt.Errorf("checkpoint of attempt %s: %w", of.AttemptID, err))
		}
	}

	return all
}

// storeEnded stores the checkpoint of an ended attempt.
func (c *Checkpointer) storeEnded(ctx context.Context, of berth.AttemptCheckpoint) error {
	err := c.withEntries(ctx, of, func(root *os.Root, entries []entry, _ int64) error {
		return c.store(ctx, of, root, entries, nil)
	})

	var (
		cannot unstorableError
		why    string
	)

	switch {
	case err == nil:
	case errors.As(err, &cannot):
		why = cannot.why
	case berth.KindOf(err) == berth.KindNotFound:
		if err := dataDirAway(c.Mark); err != nil {
			return err
		}

		why = "its files are not in the data directory of its host any more"
	case berth.KindOf(err) == berth.KindFenced:
		why = "the trial was over, or its host was given up, before it was stored"
	case changing(err):
		return nil // the next attempt writes there, or the next look stores it
	default:
		return err
	}

	if why != "" {
		c.Log.Warn("a checkpoint is not stored", "attempt", of.AttemptID, "trial_id", of.TrialID, "why", why)
	}

	return c.Ledger.SettleCheckpoint(ctx, of, why)
}

// storeRunning stores the checkpoint of an attempt that runs, if it has changed and two
// looks in a row find the same.
func (c *Checkpointer) storeRunning(ctx context.Context, of berth.AttemptCheckpoint) error {
	k := c.running[of.AttemptID]

	err := c.withEntries(ctx, of, func(root *os.Root, entries []entry, bytes int64) error {
		before := k.seen
		k.seen = entries

		switch {
		case sameEntries(entries, k.stored):
			return nil
		case before == nil || !sameEntries(entries, before):
			return ErrChanged
		}

		spool, err := c.Files.Spool(bytes)
		if err != nil {
			return err
		}
		defer spool.Close() //nolint:errcheck // it goes

		if err = c.store(ctx, of, root, entries, spool); err == nil {
			k.stored = entries
		}

		return err
	})

	var cannot unstorableError

	problem := func(why string) {
		if why != k.problem {
			c.Log.Warn("a checkpoint cannot be stored; the trial cannot go on from it on another host", "attempt", of.AttemptID, "trial_id", of.TrialID, "why", why)
			k.problem = why
		}
	}

	switch {
	case changing(err):
		if time.Since(k.due) > restlessFor {
			problem("it changes all the time; write it less often")
		}

		return nil
	case errors.As(err, &cannot), berth.KindOf(err) == berth.KindExhausted:
		problem(err.Error())
	case err != nil && berth.KindOf(err) != berth.KindNotFound && berth.KindOf(err) != berth.KindFenced:
		return err
	}

	k.due = time.Now().Add(c.After)

	return nil
}

// changing reports whether files changed or went while they were read.
func changing(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrNotExist) && berth.KindOf(err) != berth.KindNotFound
}

// ofStore turns missing permission for the files of a checkpoint into unstorableError. The
// store may refuse, too: a person mends that, and the checkpoint is stored then.
func ofStore(err error) error {
	if _, ofFile := errors.AsType[fileError](err); ofFile {
		return asUnstorable(err)
	}

	return err
}

// withEntries calls do with the files of a checkpoint. Errors: not_found when there are
// none; those of listCheckpoint and of do.
func (c *Checkpointer) withEntries(ctx context.Context, of berth.AttemptCheckpoint, do func(root *os.Root, entries []entry, bytes int64) error) error {
	root, err := c.Files.OpenCheckpoint(of)
	if err != nil {
		return asUnstorable(err)
	}
	defer root.Close() //nolint:errcheck // only read

	entries, bytes, err := listCheckpoint(ctx, root, c.Limits.orDefault())

	switch {
	case err != nil:
		return err
	case !hasFile(entries):
		return berth.Errorf(berth.KindNotFound, "there are no files")
	default:
		return do(root, entries, bytes)
	}
}

// store stores the listed entries as one archive. The archive of a running attempt is
// written to spool first, as the job may change its files during the upload. Errors:
// unstorableError; ErrChanged or fs.ErrNotExist when the files changed since they were listed;
// fenced; of the disk, the store or the database.
func (c *Checkpointer) store(ctx context.Context, of berth.AttemptCheckpoint, root *os.Root, entries []entry, spool *os.File) error {
	sum := sha256.New()
	to := io.Writer(sum)

	if spool != nil {
		to = io.MultiWriter(sum, spool)
	}

	content := readArchive(ctx, root, entries)
	defer content.Close() //nolint:errcheck // only read

	bytes, err := io.Copy(to, content)
	if err != nil {
		return asUnstorable(err)
	}

	again, _, err := listCheckpoint(ctx, root, c.Limits.orDefault())
	if err != nil {
		return err
	}

	if !sameEntries(entries, again) {
		return ErrChanged
	}

	archive := berth.StoredCheckpoint{Digest: berth.Digest(sum.Sum(nil)), Bytes: bytes}
	if err := c.Ledger.BeginCheckpoint(ctx, of, archive); err != nil {
		return err
	}

	err = c.Store.storeAll(ctx, []source{func() (io.ReadCloser, error) {
		if spool != nil {
			return io.NopCloser(io.NewSectionReader(spool, 0, bytes)), nil
		}

		return readArchive(ctx, root, entries), nil
	}}, []berth.Artifact{{Bytes: bytes, Digest: archive.Digest}})[0]
	if err != nil {
		return ofStore(err)
	}

	replaced, err := c.Ledger.FinishCheckpoint(ctx, of, archive.Digest)
	if err != nil {
		return err
	}

	c.Log.Info("stored a checkpoint", "attempt", of.AttemptID, "trial_id", of.TrialID, "bytes", bytes)

	// Now: one archive of each period would fill the store before the Cleaner's grace is over.
	if _, err := removeUnnamed(ctx, c.Ledger, c.Store, replaced); err != nil && ctx.Err() == nil {
		c.Log.Warn("removing older checkpoints; the server does it after 7 days", "error", err)
	}

	return nil
}
