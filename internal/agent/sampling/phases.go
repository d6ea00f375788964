package sampling

import (
	"time"

	"github.com/berthml/berth"
)

// PhaseAt is when a phase of the program began.
type PhaseAt struct {
	At   time.Time
	Name string
}

// Names of phases.
const (
	PhaseTraining   = "training"
	PhaseValidation = "validation"
)

// mostChanges bounds what is kept of a program whose use of the GPU's memory changes
// all the time. Frameworks keep what they took: theirs changes a few dozen times.
const mostChanges = 10_000

// Phases are the peaks by the program's phases.
func (w *DeviceWatch) Phases(began []PhaseAt) (p berth.Phases) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(began) == 0 || w.partly || len(w.held) == mostChanges {
		return p
	}

	next, phase := 0, &p.StartBytes

	// A phase begins with what is held then, and has all that changes until the next one.
	for i := 0; i < len(w.held) || next < len(began); {
		switch {
		case next < len(began) && (i == len(w.held) || !w.held[i].at.Before(began[next].At)):
			phase = peakOf(&p, began[next].Name)
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
	case PhaseTraining:
		return &p.TrainingBytes
	case PhaseValidation:
		return &p.ValidationBytes
	default:
		return nil
	}
}
