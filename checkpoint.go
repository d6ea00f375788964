package berth

import (
	"errors"
	"time"
)

// A checkpoint of a trial is all that lies in /trial/checkpoint. Workers with a store keep
// the newest of each trial there, so that the next attempt may go on from it on another host.

// ErrDamaged is an object that is not what its name says.
var ErrDamaged = errors.New("its SHA-256 is not that of its name")

// StoredCheckpoint is a checkpoint in the store: one object, a tar.
type StoredCheckpoint struct {
	Digest   Digest
	Bytes    int64 // of the archive
	StoredAt time.Time
}

// EarlierCheckpoint is the known state of the checkpoint that an earlier attempt of a trial
// left.
type EarlierCheckpoint struct {
	AttemptID string
	Number    int // of the attempt
	HostID    string
	Host      string        // its name
	Ran       bool          // its container is known to have been started
	Took      time.Duration // as long as it ran
	Left      bool          // it ended with files in /trial/checkpoint
	GivenUp   bool          // it was abandoned: its files are unknown
	Coming    bool          // its host is about to store its files
	Problem   string        // why its host does not store it; empty = no reason is known
	Stored    *StoredCheckpoint
}

// AttemptCheckpoint is an attempt whose checkpoint is on this host.
type AttemptCheckpoint struct {
	AttemptID string
	TrialID   string
	Token     int64
}
