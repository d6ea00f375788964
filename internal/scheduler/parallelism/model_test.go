//go:build nightly

package parallelism_test

import (
	"math"
	"time"
)

// Constants of the model. They were chosen together, so that Solve comes within 22 % of
// 36 measurements of one H200 with 16 cores: a TensorFlow CNN and a JAX MLP, 1 to 40 at
// once, and pairs and fours of PyTorch kernels, by MPS and by time slices (docs/packing.md).
const (
	// slice is how long a process keeps the GPU while others wait for it.
	slice = 500 * time.Microsecond

	// sliceCost is the cost of a change of process on a GPU that is always busy,
	// as a share of the work: two jobs that fill a GPU take 1.09 to 1.11 times as
	// long together as one after the other.
	sliceCost = 0.10

	// gapCost is the cost of a change of process after a gap, when the GPU had
	// become idle.
	gapCost = 12 * time.Microsecond

	// coreYield is the share of a machine's cores that trials get when all of them
	// want one: 87 % were busy where more trials gained nothing.
	coreYield = 0.87

	// rounds is how many steps Solve takes towards the fixed point. With half of each
	// step taken the change is below 0.1 % after 60 of them.
	rounds = 100
)

// Load is the need of one step of a job.
type Load struct {
	CPU     time.Duration // of processor time, before the GPU can go on
	Threads float64       // cores that work on it at once; 0 = one
	GPU     time.Duration // with the GPU alone, from the first kernel to the last, without gaps

	// Gaps is how often in a step the GPU waits for the program: after each gap the
	// program queues for the GPU again.
	Gaps float64

	// Kernel is how long one kernel runs; 0 = GPU / max(Gaps, 1).
	Kernel time.Duration

	SM  float64 // share of the SMs that a kernel fills, 0 to 1
	Bus float64 // share of the memory's bandwidth that a kernel uses, 0 to 1
}

// Alone is how long a step takes alone on the GPU.
func (l Load) Alone() time.Duration { return l.cpu() + l.GPU }

func (l Load) cpu() time.Duration {
	if l.Threads <= 0 {
		return l.CPU
	}

	return time.Duration(float64(l.CPU) / l.Threads)
}

func (l Load) kernel() float64 {
	if l.Kernel > 0 {
		return l.Kernel.Seconds()
	}

	return l.GPU.Seconds() / max(l.Gaps, 1)
}

// Pace is how a job gets on.
type Pace struct {
	Steps  float64       // a second
	Step   time.Duration // one step
	OnGPU  time.Duration // the part of Step from asking for the GPU to its answer
	SMBusy float64       // the job's part of the SM activity of the card, 0 to 1
}

// Solve returns the paces of the jobs of one GPU, in their order, once they have run
// for a while. With mps, kernels of several jobs run at once; without, the GPU gives
// each job all of itself in turns. cores is the machine's number of cores; 0 = as
// many as the jobs want.
//
// It is approximate mean value analysis of a closed queueing network (Schweitzer and
// Bard): each job is a customer who goes from the cores to the GPU and back. A job
// finds the mean queue of the others. The cores are a queue with many servers
// (Seidmann: one fast server and a delay).
func Solve(jobs []Load, mps bool, cores float64) []Pace {
	s := newSolver(jobs, cores)

	for range rounds {
		s.improve(mps)
	}

	of := make(map[Load]Pace, len(s.jobs))

	for _, j := range s.jobs {
		of[j.load] = Pace{
			Steps: j.rate, Step: seconds(1 / j.rate), OnGPU: seconds(j.onGPU),
			SMBusy: math.Min(j.rate*j.gpu*j.load.SM, 1),
		}
	}

	paces := make([]Pace, len(jobs))
	for i, load := range jobs {
		paces[i] = of[load]
	}

	return paces
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Min(s, 1e6) * float64(time.Second))
}

// solver holds times in seconds. Equal jobs get on alike: there is one for all of them.
type solver struct{ jobs []job }

type job struct {
	load   Load
	n      float64 // this many are equal
	gpu    float64 // a step's work on the GPU
	cores  float64 // a step's work at the queue of the cores
	delay  float64 // the rest of a step, which other jobs do not slow
	visits float64 // to the GPU, by turns, in a step

	rate    float64 // steps a second
	onCores float64 // of a step, waiting included
	onGPU   float64 // likewise
	stretch float64 // of kernels that run beside others'
}

func newSolver(loads []Load, cores float64) *solver {
	s := &solver{}
	at := make(map[Load]int, len(loads))

	for _, l := range loads {
		if i, known := at[l]; known {
			s.jobs[i].n++

			continue
		}

		at[l] = len(s.jobs)
		s.jobs = append(s.jobs, newJob(l, cores))
	}

	return s
}

func newJob(l Load, cores float64) job {
	j := job{load: l, n: 1, gpu: l.GPU.Seconds(), stretch: 1}
	if cores > 0 {
		j.cores = min(l.CPU.Seconds()/(cores*coreYield), l.cpu().Seconds())
	}

	j.delay = l.cpu().Seconds() - j.cores
	j.visits = max(l.Gaps, j.gpu/slice.Seconds(), 1)
	j.onCores, j.onGPU = j.cores, j.gpu
	j.rate = 1 / max(j.delay+j.onCores+j.onGPU, 1e-9)

	return j
}

// improve moves halfway from the present guess to its consequence.
func (s *solver) improve(mps bool) {
	next := make([]job, len(s.jobs))

	var turns, running []float64
	if mps {
		running = s.running()
	} else {
		turns = s.turns()
	}

	for i, j := range s.jobs {
		var onGPU, stretch float64
		if mps {
			onGPU, stretch = s.atOnce(i, running)
		} else {
			onGPU, stretch = s.byTurns(i, turns), 1
		}

		if j.cores > 0 {
			j.onCores = (j.onCores + j.cores*(1+s.others(i, job.atCores))) / 2
		}

		j.onGPU = (j.onGPU + onGPU) / 2
		j.stretch = (j.stretch + stretch) / 2
		j.rate = 1 / max(j.delay+j.onCores+j.onGPU, 1e-9)
		next[i] = j
	}

	s.jobs = next
}

// atCores, atGPU and running are the shares of time in which a job is at the cores,
// is at the GPU, and has a kernel running.
func (j job) atCores() float64 { return j.rate * j.onCores }
func (j job) atGPU() float64   { return j.rate * j.onGPU }
func (j job) running() float64 { return min(j.rate*j.gpu*j.stretch, 1) }

// besides is how many jobs like the k-th one there are beside one like the i-th.
func (s *solver) besides(i, k int) float64 {
	if k == i {
		return s.jobs[k].n - 1
	}

	return s.jobs[k].n
}

func (s *solver) others(i int, of func(job) float64) (sum float64) {
	for k, j := range s.jobs {
		sum += s.besides(i, k) * of(j)
	}

	return sum
}

// turn is how long a job keeps the GPU at a visit. switched is how likely another
// process had it before.
func (j job) turn(switched float64) float64 {
	return j.gpu/j.visits*(1+sliceCost*switched*j.continuous()) + gapCost.Seconds()*switched*(1-j.continuous())
}

// continuous is the share of a job's visits that end with the time slice and not
// with a gap.
func (j job) continuous() float64 {
	return max(0, 1-j.load.Gaps/j.visits)
}

// byTurns is a step's time at a GPU that is shared by time slices: at each visit a job
// waits for one turn of each other job present. turns has one entry for each job.
func (s *solver) byTurns(i int, turns []float64) float64 {
	turn := turns[i]

	for k, other := range s.jobs {
		turn += s.besides(i, k) * other.atGPU() * turns[k]
	}

	return s.jobs[i].visits * turn
}

// turns is how long each job keeps the GPU at a visit.
func (s *solver) turns() []float64 {
	turns := make([]float64, len(s.jobs))
	for i, j := range s.jobs {
		turns[i] = j.turn(s.company(i))
	}

	return turns
}

// company is how likely at least one other job is at the GPU.
func (s *solver) company(i int) float64 {
	alone := 1.0

	for k, j := range s.jobs {
		alone *= math.Pow(1-min(j.atGPU(), 1), s.besides(i, k))
	}

	return 1 - alone
}

// atOnce is a step's time at a GPU shared by MPS. Kernels that together want more SMs
// or bandwidth than exist slow each other down. After each gap a job waits until a
// neighbour's kernel leaves it SMs: a job that fills the GPU starves a job of many
// small kernels. running are the shares of all jobs.
func (s *solver) atOnce(i int, running []float64) (onGPU, stretch float64) {
	j := &s.jobs[i]
	sm, bus, blocked := j.load.SM, j.load.Bus, 0.0

	for k := range s.jobs {
		o := &s.jobs[k]
		busy := s.besides(i, k) * running[k]
		sm += busy * o.load.SM
		bus += busy * o.load.Bus

		if both := j.load.SM + o.load.SM - 1; both > 0 {
			blocked += busy * min(both/j.load.SM, 1) * o.load.kernel()
		}
	}

	stretch = max(1, sm, bus)

	return max(j.gpu*stretch, j.gpu+j.load.Gaps*blocked), stretch
}

// running is the share of time in which each job has a kernel running.
func (s *solver) running() []float64 {
	running := make([]float64, len(s.jobs))
	for i, j := range s.jobs {
		running[i] = j.running()
	}

	return running
}
