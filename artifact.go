package berth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// FileState is the state of the files that an attempt wrote to /trial/out.
type FileState string

// The states of an attempt's files.
const (
	FilesPending FileState = "pending" // are stored once the attempt has ended, or the next try works
	FilesStored  FileState = "stored"
	FilesLost    FileState = "lost"    // were not stored and will not be
	FilesRemoved FileState = "removed" // a limit removed them
	FilesOff     FileState = "off"     // the attempt's host has no store; never in the database
)

// NoArtifacts says how files are stored where they are not.
const NoArtifacts = "files are not stored: start `berth server` and `berth worker` with the same --artifacts, a directory that both see or a URL such as s3://bucket?region=eu-west-1"

// Digest is the SHA-256 of a file's content.
type Digest [sha256.Size]byte

// String is 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Artifact is one file of an attempt in the store.
type Artifact struct {
	Path     string // below /trial/out, with slashes
	Bytes    int64
	Digest   Digest
	StoredAt time.Time // zero = not yet
}

// LeftOut is a file that was not stored.
type LeftOut struct {
	Path   string
	Reason string // in plain words
}

// FileSet is the state of the files of one attempt.
type FileSet struct {
	AttemptID string
	Attempt   int // its number in its trial
	State     FileState
	Problem   string // why they are not stored; pending: why the last try failed; empty = nothing
	Files     int    // that are stored
	Bytes     int64  // of them
	LeftOut   int    // that were not stored
	Reasons   []LeftOut
}

// UnstoredAttempt is an attempt that has ended and whose files are to be stored.
type UnstoredAttempt struct {
	ID      string
	Ran     bool // its container was started
	Short   bool // it was a short probe, whose files are thrown away
	EndedAt time.Time
}

// FileOutcome is how the storing of an attempt's files ended.
type FileOutcome struct {
	State   FileState // FilesStored or FilesLost
	Problem string    // why they are lost; empty for stored
	LeftOut int       // all that were not stored
	Reasons []LeftOut // of the first of them
}

// WaitingFiles are the attempts of a host whose files wait for the store.
type WaitingFiles struct {
	Host     string
	Attempts int
	Oldest   time.Duration // since the first of them ended
	Problem  string        // why the last try failed; empty = none did
}

// A checkpoint of a trial is all that lies in /trial/checkpoint. Each stage has its own. Workers
// with a store keep the newest one there, so that the next attempt may go on from it on another host.

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
	Stage     string
	Token     int64
}
