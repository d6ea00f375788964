package artifacts

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

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
	// BeginCheckpoint names objects before they are stored. Errors: fenced when the trial goes on elsewhere, or is over.
	BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) (dropped []berth.Digest, err error)
	// FinishCheckpoint makes it the trial's newest. Both return objects that older ones named.
	FinishCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint) (dropped []berth.Digest, err error)

	unnamed
}

// CheckpointFiles are the checkpoints on this host.
type CheckpointFiles interface {
	// OpenCheckpoint opens the directory of a trial. Errors: not_found.
	OpenCheckpoint(trialID string) (*os.Root, error)
	// RunningCheckpoints returns the checkpoints of attempts whose containers
	// run.
	RunningCheckpoints() []berth.AttemptCheckpoint
}

const (
	// quietFor is how far two looks are apart between which nothing of a checkpoint has
	// changed before it is read while its trial runs: frameworks write it in many files.
	quietFor = 5 * time.Second
	// noisyFor is how long Checkpointer looks for a quiet moment, from the first look
	// without one. It then reads the checkpoint of a job that always writes as it is:
	// whole files, as after a kill at that moment.
	noisyFor = 30 * time.Second
	// noisyLooks is how many looks must find no quiet moment before quiet is no longer
	// required. noisyFor alone is too weak: there are no looks during a long upload of
	// another checkpoint.
	noisyLooks = 3
	// vainTries is after how many failed reads and uploads in a row the log says so.
	vainTries = 3
	// brokenTries is how often Checkpointer reads an attempt's files from a failing disk, with
	// up to longestCheckpointPause between: after some seven minutes it reports them lost.
	brokenTries = 10
	// longestCheckpointPause is between two looks while the store is down: an attempt
	// on another host may wait for it.
	longestCheckpointPause = time.Minute
	// checkpointsAtOnce is how many attempts one question to the database returns.
	checkpointsAtOnce = 100
)

// Checkpointer stores checkpoints of the trials of one host. It stores checkpoints of
// running attempts from time to time, one at a time. Beside it, one at a time, it stores
// checkpoints of ended attempts that will run again. A checkpoint counts when it is
// whole. The store keeps the newest one of each trial.
type Checkpointer struct {
	Ledger CheckpointLedger
	Files  CheckpointFiles
	Store  *Store
	HostID string
	Mark   string // as Uploader.Mark
	Limits Limits
	After  time.Duration // how often a running attempt's is stored; 0 = only at its end
	Quiet  time.Duration // it must not change for this long; default 5 s
	Every  time.Duration // between two looks; default 5 s
	Log    *slog.Logger

	mu    sync.Mutex                   // guards known and turns
	known map[string]*storedCheckpoint // by attempt
	turns map[string]time.Time         // by trial: when a running attempt's next look is due
	sent  sender
}

// storeEnded stores the checkpoint of an ended attempt.
func (c *Checkpointer) storeEnded(ctx context.Context, of berth.AttemptCheckpoint) error {
	if k := c.stateOf(of.AttemptID); !k.ended { // writes to a mapped file may leave its times unchanged: the last one is read in full
		k.ended, k.doubted, k.read = true, true, nil
	}

	err := c.store(ctx, of, 0)
	if errors.Is(err, errBroken) {
		if away := dataDirAway(c.Mark); away != nil {
			return away
		}

		err = c.broken(of, err)
	}

	var cannot unstorableError

	switch {
	case err == nil:
		c.turn(of.TrialID)

		return c.Ledger.SettleCheckpoint(ctx, of, "")
	case errors.As(err, &cannot):
		c.Log.Warn("a checkpoint cannot be stored", "attempt", of.AttemptID, "trial_id", of.TrialID, "why", cannot.why)

		return c.Ledger.SettleCheckpoint(ctx, of, cannot.why)
	case berth.KindOf(err) == berth.KindNotFound, errors.Is(err, errNothing):
		if err := dataDirAway(c.Mark); err != nil {
			return err
		}

		why := "its directory is not on its host any more"
		if errors.Is(err, errNothing) {
			why = "its files are not in the data directory of its host any more"
		}

		c.Log.Warn("a checkpoint that an attempt left is not there", "attempt", of.AttemptID, "trial_id", of.TrialID, "why", why)

		return c.Ledger.SettleCheckpoint(ctx, of, why)
	case berth.KindOf(err) == berth.KindFenced:
		return c.Ledger.SettleCheckpoint(ctx, of, "the trial was over, or its host was given up, before it was stored")
	case changing(err):
		return nil // the next attempt is at it, or the next look has it
	default:
		return err
	}
}

// broken is unstorableError after brokenTries failed reads of an attempt's files.
func (c *Checkpointer) broken(of berth.AttemptCheckpoint, err error) error {
	k := c.stateOf(of.AttemptID)
	if k.broken++; k.broken < brokenTries {
		return err
	}

	return unstorableError{err.Error()}
}

// storeRunning stores the checkpoint of an attempt that runs, if it has changed.
func (c *Checkpointer) storeRunning(ctx context.Context, of berth.AttemptCheckpoint) error {
	k, quiet := c.stateOf(of.AttemptID), cmp.Or(c.Quiet, quietFor)
	if k.looks >= noisyLooks && time.Since(k.noisy) >= min(noisyFor, c.After) {
		quiet = 0
	}

	err := c.store(ctx, of, quiet)
	if errors.Is(err, errBroken) { // the next turn asks again
		if away := dataDirAway(c.Mark); away != nil {
			return away
		}

		err = unstorableError{err.Error()}
	}

	var cannot unstorableError

	switch {
	case errors.As(err, &cannot):
		if cannot.why != k.problem {
			c.Log.Warn("a checkpoint cannot be stored; the trial cannot go on from it on another host", "attempt", of.AttemptID, "trial_id", of.TrialID, "why", cannot.why)
		}

		k.problem = cannot.why
	case errors.Is(err, errNothing): // it may write one later
	case changing(err): // the next look may find it quiet
		if k.looks++; k.looks == 1 {
			k.noisy = time.Now()
		}

		c.noteVainTry(of, k, err)

		return nil
	case err != nil && berth.KindOf(err) != berth.KindNotFound && berth.KindOf(err) != berth.KindFenced:
		return err
	}

	k.noisy, k.looks = time.Time{}, 0
	c.turn(of.TrialID)

	return nil
}

// noteVainTry has a checkpoint whose files are never the same for as long as it takes to read and
// send them wait for its next turn: each try takes the disk, a core and the uplink. It tells once.
func (c *Checkpointer) noteVainTry(of berth.AttemptCheckpoint, k *storedCheckpoint, err error) {
	if errors.Is(err, errNotQuiet) {
		return
	}

	if k.vain++; k.vain > 1 { // the first may have been bad luck
		c.turn(of.TrialID)
	}

	if k.vain == vainTries {
		c.Log.Warn("a checkpoint changes faster than it is read and sent, so none of the running trial is stored; have the job write it to a new file and rename that, or write it less often",
			"attempt", of.AttemptID, "trial_id", of.TrialID, "tries", k.vain, "why", err)
	}
}

// changing reports whether files changed or went while they were read.
func changing(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrNotExist) && berth.KindOf(err) != berth.KindNotFound
}

// store stores a checkpoint that has not changed for quiet, unless it is stored as it
// is. Errors: unstorableError; errNothing; ErrChanged or fs.ErrNotExist while it changes; not_found
// when its directory is not there; fenced; of the store or the database.
func (c *Checkpointer) store(ctx context.Context, of berth.AttemptCheckpoint, quiet time.Duration) error {
	root, err := c.Files.OpenCheckpoint(of.TrialID)
	if err != nil {
		return asUnstorable(ctx, err)
	}
	defer root.Close() //nolint:errcheck // only read

	items, err := c.read(ctx, of, root, quiet)
	if err != nil || items == nil {
		return err
	}

	id := uuid.NewString()
	entries := make([]berth.CheckpointEntry, len(items))

	var (
		sources []found
		claims  []berth.Artifact
		sent    = make(map[berth.Digest]bool)
	)

	for n, i := range items {
		entries[n] = i.CheckpointEntry

		if i.mode().IsRegular() && !sent[i.Digest] {
			sent[i.Digest] = true
			sources, claims = append(sources, found{path: i.Path, info: i.info}), append(claims, berth.Artifact{Path: i.Path, Bytes: i.Bytes, Digest: i.Digest})
		}
	}

	release, err := holdOpen(root, sources, heldFiles())
	if err != nil {
		return asUnstorable(ctx, err)
	}
	defer release()

	half, err := c.Ledger.BeginCheckpoint(ctx, id, of, entries)
	if err != nil {
		return err
	}

	c.removeObjects(ctx, half) // now: only this process knows the rest of a failed upload, and this one may fail, too

	for n, one := range c.sent.sendAll(ctx, root, sources, claims) {
		if one.ofFile != nil {
			delete(c.stateOf(of.AttemptID).read, claims[n].Path) // its content differs from the digest, whatever its times say
		}

		if err := cmp.Or(one.err, asUnstorable(ctx, one.ofFile)); err != nil {
			return err
		}

		if !one.stored {
			return berth.Errorf(berth.KindUnavailable, "storing %q: it was not sent", claims[n].Path)
		}
	}

	if err := c.Store.Ready(ctx); err != nil { // its disk may have been lost since: objects may be below the mount point
		return err
	}

	if err := c.Store.settle(claims); err != nil {
		return err
	}

	old, err := c.Ledger.FinishCheckpoint(ctx, id, of)
	if err != nil {
		return err
	}

	k := c.stateOf(of.AttemptID)
	k.items, k.doubted, k.vain = items, false, 0
	c.Log.Info("stored a checkpoint", "attempt", of.AttemptID, "trial_id", of.TrialID, "files", len(claims))
	c.removeObjects(ctx, old)

	return nil
}

// removeObjects removes objects of older checkpoints at once: one of each period would fill the
// store before the Cleaner's grace is over. The Cleaner removes the rest after an
// error.
func (c *Checkpointer) removeObjects(ctx context.Context, digests []berth.Digest) {
	if _, err := removeUnnamed(ctx, c.Ledger, c.Store, digests); err != nil && ctx.Err() == nil {
		c.Log.Warn("removing objects of older checkpoints; the server does it after 7 days", "error", err)
	}
}
