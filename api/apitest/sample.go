package apitest

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/spec"
)

// SweepFile is a small valid sweep file: 4 trials in 2 shapes.
const SweepFile = `name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}", "--width={{width}}"]
parameters:
  - {name: lr, values: [0.01, 0.1]}
  - {name: width, values: [32, 64], memory: true}
search: {algorithm: grid}
objective: {metric: val_accuracy, goal: maximize}
`

// MiB is 2^20 bytes.
const MiB = 1 << 20

// The keys of the sample's shapes.
const (
	SmallShape = "aaaa1111bbbb2222cccc3333dddd4444eeee5555ffff66660000777711118888"
	LargeShape = "bbbb1111bbbb2222cccc3333dddd4444eeee5555ffff66660000777711118888"
)

// Sample is a store with one ended sweep and one host. The sweep has four
// trials in two shapes; one of them ran out of memory once.
func Sample() *Store {
	s := &Store{Hosts: []berth.Host{SampleHost()}}

	decoded, err := spec.Decode([]byte(SweepFile), "")
	if err != nil {
		panic(err)
	}

	finished := Start.Add(92 * time.Second)
	best := 0.97
	s.Sweeps = []berth.Sweep{{
		ID: NewID(1), Name: "digits", Spec: decoded, ImageDigest: "berth-examples/digits@sha256:1", State: berth.SweepSucceeded,
		CreatedBy: "local", CreatedAt: Start, StartedAt: &Start, FinishedAt: &finished, BestTrial: 2, BestValue: &best,
		Counts: berth.Counts{Total: 4, Planned: 4, Succeeded: 4, OOMRetries: 1},
	}}

	s.addTrial(1, 32, SmallShape, 0.91)
	s.addTrial(2, 32, SmallShape, best)
	s.addTrial(3, 64, LargeShape, 0.95)
	s.addTrial(4, 64, LargeShape, 0.93)

	s.addAttempt(1, 1, berth.PurposeProbe, berth.FailureOK, 4096, 600, 0, 40)
	s.addAttempt(2, 1, berth.PurposeRun, berth.FailureOK, 704, 610, 40, 80)
	s.addAttempt(3, 1, berth.PurposeProbe, berth.FailureHostOOM, 768, 768, 0, 10)
	s.addAttempt(3, 2, berth.PurposeRun, berth.FailureOK, 1280, 900, 12, 52)
	s.addAttempt(4, 1, berth.PurposeRun, berth.FailureOK, 1024, 890, 54, 92)

	s.Probes = []berth.ProbedShape{sampleProbe(SmallShape, 32, 610), sampleProbe(LargeShape, 64, 900)}

	return s
}

// SampleHost is a host of two cores and 32 GiB.
func SampleHost() berth.Host {
	return berth.Host{
		ID: NewID(100), Name: "laptop", BootID: "boot", State: berth.HostReady, CPUMilli: 2000, MemoryBytes: 32 << 30,
		MemoryHeadroomBytes: 1 << 30, MemoryFreeBytes: 30 << 30, DiskFreeBytes: 200 << 30, DiskHeadroomBytes: 2 << 30, Devices: []berth.Device{}, LastSeenAt: Start,
	}
}

func (s *Store) addTrial(number int, width int64, shape string, value float64) {
	started, finished := Start, Start.Add(40*time.Second)
	s.Trials = append(s.Trials, berth.Trial{
		ID: NewID(10 + number), SweepID: NewID(1), Number: number, ShapeKey: shape, State: berth.TrialSucceeded, Value: &value, Attempts: 1,
		Params:    berth.Assignment{"lr": berth.FloatValue(0.01), "width": berth.IntValue(width)},
		CreatedAt: Start, StartedAt: &started, FinishedAt: &finished,
	})
}

func (s *Store) addAttempt(trial, number int, purpose berth.Purpose, kind berth.FailureKind, reserved, peak int64, from, to int) {
	started, finished := Start.Add(time.Duration(from)*time.Second), Start.Add(time.Duration(to)*time.Second)
	s.Attempts = append(s.Attempts, berth.Attempt{
		ID: NewID(20 + 10*trial + number), TrialID: NewID(10 + trial), Number: number, Stage: berth.StageMain, Purpose: purpose,
		State: berth.AttemptFinished, HostID: NewID(100), Kind: kind,
		Demand: berth.Demand{MemoryBytes: reserved * MiB, CPUMilli: 1000},
		Usage: berth.Usage{
			MemoryPeakBytes: peak * MiB, CPU: berth.Duration(30 * time.Second), Wall: berth.Duration(finished.Sub(started)), Samples: 10,
		},
		PlacedAt: started, StartedAt: &started, FinishedAt: &finished,
	})
}

func sampleProbe(key string, width, peak int64) berth.ProbedShape {
	return berth.ProbedShape{
		Key: key,
		Shape: berth.Shape{
			ImageDigest: "berth-examples/digits@sha256:1", Command: []string{"python3", "train.py"}, Stage: berth.StageMain,
			Values: berth.Assignment{"width": berth.IntValue(width)}, CPUMilli: 1000,
		},
		Footprints: []berth.Footprint{{
			ShapeKey: key, Class: berth.ClassCPU, Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: peak * MiB, CPUMilli: 950,
			Duration: berth.Duration(40 * time.Second), MeasuredAt: Start,
		}},
	}
}
