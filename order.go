package berth

import (
	"errors"
	"time"
)

// Order tells a host to run an attempt.
type Order struct {
	AttemptID string         `json:"attempt_id"`
	Token     int64          `json:"token"`
	Short     bool           `json:"short,omitempty"` // a short probe: two epochs, result thrown away
	Stop      bool           `json:"stop,omitempty"`  // do not start it: stop its container and give the place back
	Progress  Progress       `json:"-"`               // of an earlier run of the same attempt
	Beat      func(Progress) `json:"-"`               // told of progress; must not block; nil = no one is
}

// Progress is the content of a heartbeat: enough for the next run of the same
// attempt to go on without losing measurements.
type Progress struct {
	ContainerID string    `json:"container_id"`
	StartedAt   time.Time `json:"started_at"`
	Usage       Usage     `json:"usage"`
}

// ErrStop is the cause with which a run's context ends when its container must
// stop, because a person or the sweep canceled the trial.
var ErrStop = errors.New("the trial was canceled")

// ErrNotStopped says that an attempt's container had to stop, for any reason,
// and that Docker did not stop it in time. It is unavailable: another run tries
// again. Once the attempt is fenced, the reconciler does.
var ErrNotStopped = Errorf(KindUnavailable, "Docker did not stop the container")
