package runtrial

import (
	"time"

	"github.com/berthml/berth"
)

// phaseAt is when a phase of the program began.
type phaseAt struct {
	at   time.Time
	name string
}

// Names of phases.
const (
	phaseTraining   = "training"
	phaseValidation = "validation"
)

// mostPhases is three records for each of more epochs than trials have: the shim's
// MOST_RECORDS. Where there are so many, phases are not told apart.
const mostPhases = 10_000

// mostChanges bounds what is kept of a program whose use of the GPU's memory changes
// all the time. Frameworks keep what they took: theirs changes a few dozen times.
const mostChanges = 10_000

// phases are the peaks by the program's phases.
func (w *deviceWatch) phases(began []phaseAt) (p berth.Phases) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(began) == 0 || w.partly || len(w.held) == mostChanges {
		return p
	}

	next, phase := 0, &p.StartBytes

	// A phase begins with what is held then, and has all that changes until the next one.
	for i := 0; i < len(w.held) || next < len(began); {
		switch {
		case next < len(began) && (i == len(w.held) || !w.held[i].at.Before(began[next].at)):
			phase = peakOf(&p, began[next].name)
			next++

			if i > 0 && phase != nil {
				*phase = max(*phase, w.held[i-1].bytes)
			}
		default:
			if phase != nil {
				*phase = max(*phase, w.held[i].bytes)
			}

			i++
		}
	}

	return p
}

// peakOf is where the peak of a phase is; nil = of none that is told apart.
func peakOf(p *berth.Phases, phase string) *int64 {
	switch phase {
	case phaseTraining:
		return &p.TrainingBytes
	case phaseValidation:
		return &p.ValidationBytes
	default:
		return nil
	}
}
