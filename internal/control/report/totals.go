package report

import (
	"time"

	"github.com/berthml/berth"
)

// Totals are a sweep's use of all GPUs, or of all hosts' cores.
type Totals struct {
	Places   int
	Trials   int // that had an attempt there
	Attempts int // that began there

	Used        time.Duration // sum over places
	Charged     time.Duration // of Used
	AttemptTime time.Duration // of all attempts, one after the other, as long as each took
	AtOnce      float64       // attempts on a place, mean over Used; 0 when that is 0
	MaxAtOnce   int           // on one place

	// AloneTime is how long the attempts would take with a place for each. An
	// attempt that ran alone counts with its time. One that ran beside others
	// counts with the mean of its shape's whole runs alone in this sweep, where
	// there are any and they took less, and else with its own time, which is an
	// upper bound. An attempt that only packing made necessary does not count.
	AloneTime     time.Duration
	AloneRan      int // attempts that ran alone
	AloneByShape  int // attempts that count with the mean of their shape
	AloneBounded  int // attempts that count with their own time beside others
	AloneNeedless int // attempts that do not count

	ReservedByteSeconds float64
	DefaultByteSeconds  float64 // of GPUs: DefaultModeBytes over AloneTime; 0 for cores

	// How busy attempts kept GPUs: the time of each whose activity is known, times the
	// part of the SMs that had work, of the memory's bandwidth, and of the tensor cores.
	ActivityTime                 time.Duration // of AttemptTime, of attempts whose activity is known
	SMTime, DRAMTime, TensorTime time.Duration

	// Over ended attempts that were measured throughout and did not run out of memory.
	Measured        int
	PeakBytes       int64         // sum
	PeakReserved    int64         // sum of their reservations
	CPUTime         time.Duration // of processors, as measured
	CPUReservedTime time.Duration // cores reserved, times time

	HeldBack int // ended attempts that their limit of cores made slower
}

// shapeOn is a shape on a kind of device: shared or not, alone it takes as long.
type shapeOn struct {
	key  string
	kind berth.DeviceClass
}

func shapeOf(a TrialAttempt) shapeOn { return shapeOn{a.ShapeKey, kindOf(a.Class)} }

// kindOf is a class without how attempts share the device.
func kindOf(c berth.DeviceClass) berth.DeviceClass {
	if c.Mode() == berth.SharingMPS {
		return c.Twin()
	}

	return c
}

// aloneTimes are the mean times of whole runs that had their card to themselves.
func aloneTimes(trials []Trial) map[shapeOn]time.Duration {
	sum, runs := make(map[shapeOn]time.Duration), make(map[shapeOn]time.Duration)

	for _, t := range trials {
		for _, a := range t.Attempts {
			if a.Alone && a.Took > 0 && a.Kind == berth.FailureOK && !a.Short {
				sum[shapeOf(a)] += a.Took
				runs[shapeOf(a)]++
			}
		}
	}

	for shape := range sum {
		sum[shape] /= runs[shape]
	}

	return sum
}

func totalsOf(places []Place, trials []Trial, alone map[shapeOn]time.Duration, gpu bool) Totals {
	var t Totals

	for _, p := range places {
		if (p.DeviceID != "") == gpu {
			t.addPlace(p)
		}
	}

	for _, trial := range trials {
		began := false

		for _, a := range trial.Attempts {
			if a.StartedAt != nil && (a.DeviceID != "") == gpu {
				began = true

				t.addAttempt(a, alone)
			}
		}

		if began {
			t.Trials++
		}
	}

	if t.Used > 0 {
		t.AtOnce = t.AttemptTime.Seconds() / t.Used.Seconds()
	}

	return t
}

// aloneTime is how long the attempt would take with its place to itself.
func (t *Totals) aloneTime(a TrialAttempt, alone map[shapeOn]time.Duration) time.Duration {
	mean, measured := alone[shapeOf(a)]

	switch whole := a.Kind == berth.FailureOK; { // the mean does not apply to an interrupted run
	case needless(a):
		t.AloneNeedless++

		return 0
	case a.Alone:
		t.AloneRan++

		return a.Took
	case whole && measured:
		t.AloneByShape++

		return min(a.Took, mean)
	default:
		t.AloneBounded++

		return a.Took
	}
}

// needless reports whether the attempt would not exist with a place for each
// trial: it probed its shape, ran out of its reservation, or suffered from its
// neighbours.
func needless(a TrialAttempt) bool {
	switch a.Kind {
	case berth.FailureHostOOM, berth.FailureDeviceOOM, berth.FailureDeviceBusy, berth.FailureNeighbourFault:
		return true
	default:
		return a.Short
	}
}

func (t *Totals) addPlace(p Place) {
	t.Places++
	t.Attempts += p.Attempts
	t.Used += p.Used
	t.Charged += p.Charged
	t.AttemptTime += p.AttemptTime
	t.MaxAtOnce = max(t.MaxAtOnce, p.MaxAtOnce)
	t.ReservedByteSeconds += p.ReservedByteSeconds
}

func (t *Totals) addAttempt(a TrialAttempt, alone map[shapeOn]time.Duration) {
	took := t.aloneTime(a, alone)
	t.AloneTime += took
	t.DefaultByteSeconds += float64(a.DefaultBytes) * took.Seconds()

	t.addActivity(a)

	if a.Kind != "" && a.HeldBack >= berth.HeldBackFrom {
		t.HeldBack++
	}

	if a.Kind == "" || a.PeakPartial {
		return
	}

	if a.PeakBytes > 0 {
		t.Measured++
		t.PeakBytes += a.PeakBytes
		t.PeakReserved += a.ReservedBytes
	}

	if a.Wall > 0 {
		const milli = 1000

		t.CPUTime += a.CPU
		t.CPUReservedTime += a.Wall * time.Duration(a.CPUMilli) / milli
	}
}

// addActivity adds an attempt's activity: zero for the time in which it held nothing
// on its GPU.
func (t *Totals) addActivity(a TrialAttempt) {
	active := min(a.ActiveFor, a.Took)
	if active <= 0 {
		return
	}

	of := func(milli int64) time.Duration {
		return time.Duration(float64(active) * float64(milli) / berth.FullActivity)
	}

	t.ActivityTime += a.Took
	t.SMTime += of(a.Activity.SMMilli)
	t.DRAMTime += of(a.Activity.DRAMMilli)
	t.TensorTime += of(a.Activity.TensorMilli)
}
