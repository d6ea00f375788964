//go:build nightly

package parallelism_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/parallelism"
)

const (
	// startSeconds is how long a program imports TensorFlow, on one core.
	startSeconds = 2
	// sliceCost is the cost of a change of process on a GPU, as a share of the work: two
	// jobs that fill a GPU take 1.09 to 1.11 times as long together as one after the
	// other (one H200, 2026-11-21).
	sliceCost = 0.10
	// coreYield is the share of a machine's cores that trials get when all of them
	// want one: 87 % were busy where more trials gained nothing (the same).
	coreYield = 0.87
)

// kind is a shape of the mix: its use of the machine while it trains alone.
type kind struct {
	name    string
	cores   float64 // that it keeps busy
	busy    float64 // share of the time in which it has a kernel on the GPU
	fills   float64 // share of the GPU's SMs, or bandwidth, that a kernel takes
	gaps    float64 // kernels of its own, one after the other, for each of a neighbour's
	seconds float64 // of training, alone
	memory  float64 // share of the GPU
}

// cpu and activity are a probe's measurements of the kind alone, over its whole
// run.
func (k kind) cpu() float64      { return (startSeconds + k.seconds*k.cores) / k.alone() }
func (k kind) activity() float64 { return k.seconds / k.alone() * k.busy * k.fills }
func (k kind) alone() float64    { return startSeconds + k.seconds }

// attempt is one of the fleet's, running.
type attempt struct {
	kind    int
	start   float64 // left of the start
	left    float64 // of the training, in seconds alone
	began   float64
	company float64 // attempts times seconds
}

// policy says how many of the kinds may share the GPU now, and how; 0 = by the rule.
type policy func(f *fleet) berth.Advice

// fleet is one GPU of one host with a sweep that waits. Its clock jumps from event to event.
type fleet struct {
	kinds   []kind
	cores   float64
	queue   []int // of kinds, in order
	work    []float64
	running []*attempt
	mode    berth.SharingMode
	now     float64
	mix     string                  // when an attempt was placed last
	paces   map[string][]berth.Pace // by mix
	solved  map[string][]float64    // speeds of the kinds, by mode and how many of each there are
}

var modes = []berth.SharingMode{berth.SharingMPS, berth.SharingTimeSlicing}

// run runs the sweep to its end, or until this many seconds. It returns how long that took.
func (f *fleet) run(p policy, until float64) float64 {
	for (len(f.queue) > 0 || len(f.running) > 0) && f.now < until {
		f.fill(p)
		f.advance()
	}

	return f.now
}

func (f *fleet) fill(p policy) {
	for len(f.queue) > 0 {
		c := p(f)
		mode := cmp.Or(c.Mode, f.mode, berth.SharingMPS)
		if len(f.running) == 0 {
			f.mode = mode
		}

		fits := make([]bool, len(f.kinds))
		for k := range f.kinds {
			fits[k] = f.fits(k, c)
		}

		next := slices.IndexFunc(f.queue, func(k int) bool { return fits[k] })
		if mode != f.mode || next < 0 {
			return
		}

		f.mix, _ = f.population()
		k := f.queue[next]
		f.running = append(f.running, &attempt{kind: k, start: startSeconds, left: f.kinds[k].seconds * f.work[0], began: f.now})
		f.queue, f.work = slices.Delete(f.queue, next, next+1), f.work[1:]
	}
}

// fits is the rule of internal/scheduler/packing: cores, memory and activity; with a company
// that was advised, memory alone.
func (f *fleet) fits(k int, advice berth.Advice) bool {
	var cpu, memory, activity float64

	add := func(k kind) { cpu, memory = cpu+book(k.cpu()), memory+k.memory }

	for _, a := range f.running {
		add(f.kinds[a.kind])
		activity += f.kinds[a.kind].activity()
	}

	own := f.kinds[k].activity()
	add(f.kinds[k])

	switch {
	case memory > 1:
		return false
	case len(f.running) == 0:
		return true
	case len(f.running) < advice.AtOnce:
		return true
	case advice.Capped:
		return false
	default:
		return cpu <= f.cores && len(f.running) < 56 && activity+own <= 2-min(activity, own, 1)
	}
}

func book(cpu float64) float64 { return max(cpu*2/3, min(cpu, 0.25)) }

// advance goes on to the next event.
func (f *fleet) advance() {
	rates := f.speeds()
	next := math.Inf(1)

	for i, a := range f.running {
		left := a.left
		if a.start > 0 {
			left = a.start
		}

		next = min(next, left/rates[i])
	}

	f.now += next

	for i, a := range f.running {
		a.company += next * float64(len(f.running))

		if a.start > 0 {
			a.start = clip(a.start - next*rates[i])
		} else {
			a.left = clip(a.left - next*rates[i])
		}
	}

	f.running = slices.DeleteFunc(f.running, func(a *attempt) bool {
		if a.start > 0 || a.left > 0 {
			return false
		}

		f.record(a)

		return true
	})
}

func clip(left float64) float64 {
	if left < 1e-6 {
		return 0
	}

	return left
}

// speeds is how fast each attempt that runs gets on, as a share of its speed alone.
func (f *fleet) speeds() []float64 {
	kinds := append(slices.Clone(f.kinds), kind{cores: 1}) // the last is a program that starts
	counts := make([]byte, len(kinds))
	of := make([]int, len(f.running))

	for i, a := range f.running {
		of[i] = a.kind
		if a.start > 0 {
			of[i] = len(f.kinds)
		}

		counts[of[i]]++
	}

	key := string(counts) + string(f.mode)
	if f.solved[key] == nil {
		f.solved[key] = solve(kinds, counts, f.mode, f.cores*coreYield)
	}

	rates := make([]float64, len(of))
	for i, k := range of {
		rates[i] = f.solved[key][k]
	}

	return rates
}

// solve returns how fast jobs of each kind get on beside the others: the fixed point of
// what they leave each other of the cores and of the GPU. By time slices a job waits
// for a turn of each job that is at the GPU. By MPS kernels run at once, and slow each
// other down where they want more than there is; a job of many small kernels
// waits at each for a large one to leave it room.
func solve(kinds []kind, counts []byte, mode berth.SharingMode, cores float64) []float64 {
	rates, waits, queues := make([]float64, len(kinds)), make([]float64, len(kinds)), 1.0 // how much longer work takes on the GPU, and on the cores
	for k := range kinds {
		rates[k], waits[k] = 1, 1
	}

	for range 100 {
		used := 0.0
		for k, own := range kinds { // that are at the cores
			used += float64(counts[k]) * min(rates[k]*(1-own.busy)*queues, 1) * own.cores / (1 - own.busy)
		}

		queues = (queues + max(used/cores, 1)) / 2
		next := slices.Clone(waits)

		for i, own := range kinds {
			present, wanted, blocked := 0.0, own.fills, 0.0

			for k, other := range kinds {
				n := float64(counts[k])
				if k == i {
					n = max(n-1, 0)
				}

				at := n * min(rates[k]*other.busy*waits[k], 1)
				present += at
				wanted += at * other.fills
				blocked += at * max(own.fills+other.fills-1, 0) * own.gaps
			}

			wait := (1 + present) * (1 + sliceCost*min(present, 1))
			if mode == berth.SharingMPS {
				wait = max(wanted, 1+blocked)
			}

			next[i] = (waits[i] + wait) / 2
		}

		waits = next
		for k, own := range kinds {
			rates[k] = 1 / ((1-own.busy)*queues + own.busy*waits[k])
		}
	}

	return rates
}

// record keeps the pace of an attempt that has ended, as internal/store/postgres does.
func (f *fleet) record(a *attempt) {
	took := f.now - a.began
	company := a.company / took
	f.paces[f.mix] = add(f.paces[f.mix], f.kinds[a.kind].name, berth.Company{Mode: f.mode, AtOnce: berth.CompanySize(company)}, took/company)
}

// add takes in one attempt, as the ledger does.
func add(paces []berth.Pace, shape string, in berth.Company, seconds float64) []berth.Pace {
	for i := range paces {
		if p := &paces[i]; p.ShapeKey == shape && p.Company == in {
			p.Samples++
			n := float64(min(p.Samples, berth.PaceMemory))
			off := seconds - p.Mean
			p.Mean += off / n
			p.Variance += (off*(seconds-p.Mean) - p.Variance) / n

			return paces
		}
	}

	return append(paces, berth.Pace{ShapeKey: shape, Company: in, Samples: 1, Mean: seconds})
}

// population returns the running and waiting attempts: their mix, and how many
// of each wait.
func (f *fleet) population() (mix string, waiting map[string]int) {
	counts := make([]int, len(f.kinds))
	for _, k := range f.queue {
		counts[k]++
	}

	there := make([]bool, len(f.kinds))
	for _, a := range f.running {
		there[a.kind] = true
	}

	waiting = make(map[string]int)

	for k, n := range counts {
		if n > 0 || there[k] {
			waiting[f.kinds[k].name] = n
			mix += f.kinds[k].name
		}
	}

	return mix, waiting
}

// berths asks for advice as the placer does.
func berths(f *fleet) berth.Advice {
	mix, waiting := f.population()
	q := parallelism.Question{Paces: f.paces[mix], Modes: modes, Waiting: waiting}

	for _, k := range f.kinds {
		if _, there := waiting[k.name]; there {
			q.Heavy = q.Heavy || 1000*k.activity() >= parallelism.HeavyMilli
		}
	}

	if len(f.running) > 0 {
		q.Now = f.mode
	}

	return parallelism.Advise(q)
}

func fixed(mode berth.SharingMode, atOnce int) policy {
	return func(*fleet) berth.Advice {
		return berth.Advice{Company: berth.Company{Mode: mode, AtOnce: atOnce}, Capped: true}
	}
}

func byRule(*fleet) berth.Advice { return berth.Advice{} }
