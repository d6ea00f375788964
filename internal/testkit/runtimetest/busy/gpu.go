package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

// What TensorFlow 2.21 did on one H200 (2026-11-21). All in MiB.
const (
	libraryMiB   = 97  // cuBLAS and cuDNN, outside the pool
	smallReserve = 225 // kept out of the pool where less than 2,048 is left after the context
	mib          = 1 << 20
)

// comeBack is how long the program waits for a worker that is started again: the cards
// live there, and a real one would answer.
const comeBack = 2 * time.Minute

// gpuJob trains on a simulated GPU as TensorFlow does on a real one.
type gpuJob struct {
	pool            int // MiB
	steps, faultAt  int
	cpu, gpu, retry time.Duration
	sm, value       float64
	deaf            bool

	terminated chan os.Signal // nil = by no signal
	conn       *wire.Conn
	path       string
	limit      int64 // of MPS; 0 = none
	held       int64 // context and all
}

func (j *gpuJob) parse(args []string) error {
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	f.IntVar(&j.pool, "mib", 100, "tensors, beside context and libraries")
	f.IntVar(&j.steps, "steps", 100, "in all")
	f.DurationVar(&j.cpu, "cpu", 4*time.Millisecond, "of a step, on one core")
	f.DurationVar(&j.gpu, "gpu", time.Millisecond, "of a step, with the GPU alone")
	f.Float64Var(&j.sm, "sm", 0.2, "share of the SMs")
	f.Float64Var(&j.value, "value", 0.5, "val at the end")
	f.IntVar(&j.faultAt, "fault-at", 0, "step at which it uses an address that is not its own; 0 = never")
	f.DurationVar(&j.retry, "retry", 10*time.Second, "how long it tries an allocation again that was refused")

	f.BoolVar(&j.deaf, "deaf", false, "has no handler for SIGTERM; without, it ends after the step that runs")

	return f.Parse(args)
}

// gpu stands for a training script of TensorFlow.
func gpu(args []string) (int, error) {
	var j gpuJob
	if err := j.parse(args); err != nil {
		return 2, err
	}

	if j.deaf {
		signal.Ignore(syscall.SIGTERM) // Go would take it, and end the program at once
	} else {
		j.terminated = make(chan os.Signal, 1)
		signal.Notify(j.terminated, syscall.SIGTERM)
	}

	if j.path = cardPath(); j.path == "" {
		warn("Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly.")
		warn("Skipping registering GPU devices...")

		return 0, j.train(func(int) error { rest(j.gpu * 20); return nil }) // a core is slower
	}

	err := j.start()
	if err == nil {
		err = j.train(j.step)
	}

	var code exitError

	switch {
	case errors.As(err, &code):
		return int(code), nil
	case err != nil:
		return 1, err
	}

	return 0, nil
}

// exitError ends the program without a further word.
type exitError int

func (e exitError) Error() string { return "exit " + strconv.Itoa(int(e)) }

func warn(text string) { fmt.Fprintln(os.Stderr, text) }

// cardPath is the socket of the card, or of its MPS; empty = there is no GPU. As with
// NVIDIA's library, a program that finds no MPS server runs without, and without limit.
func cardPath() string {
	path := os.Getenv(wire.Variable)
	if path == "" {
		return ""
	}

	if dir := os.Getenv("CUDA_MPS_PIPE_DIRECTORY"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, wire.MPSSocket)); err == nil {
			return filepath.Join(dir, wire.MPSSocket)
		}
	}

	return path
}

// start makes the context and the pool.
func (j *gpuJob) start() error {
	if strings.HasSuffix(j.path, "/"+wire.MPSSocket) {
		j.limit = mpsLimit(os.Getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"))
	}

	a, err := j.hello()

	for began := time.Now(); err != nil && time.Since(began) < comeBack; a, err = j.hello() {
		if code := rest(100 * time.Millisecond); code != 0 {
			return exitError(code)
		}
	}

	if err != nil {
		return err
	}

	if a.Error != "" {
		warn("tensorflow.python.framework.errors_impl.InternalError: cudaSetDevice() on GPU:0 failed. Status: " + a.Text)

		return exitError(1)
	}

	growth := os.Getenv("TF_FORCE_GPU_ALLOW_GROWTH") == "true"
	if growth {
		warn("Overriding orig_value setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable is set. Original config value was false.")
	}

	pool := poolMiB(int(a.FreeBytes / mib))
	warn(fmt.Sprintf("Created device /job:localhost/replica:0/task:0/device:GPU:0 with %d MB memory:  -> device: 0, name: %s, compute capability: 9.0", pool, a.Model))

	if j.pool > pool {
		if code := rest(j.retry); code != 0 {
			return exitError(code)
		}

		return tooLarge(j.pool)
	}

	if growth {
		pool = j.pool
	}

	if err := j.take(pool); err != nil {
		return err
	}

	return j.take(libraryMiB)
}

// poolMiB is the part of the free memory after the context that the allocator
// may take.
func poolMiB(free int) int {
	reserve, err := strconv.Atoi(os.Getenv("TF_DEVICE_MIN_SYS_MEMORY_IN_MB"))
	if err != nil {
		reserve = smallReserve
	}

	return max(free-reserve, 0)
}

// mpsLimit reads 0=1216M; 0 = no limit.
func mpsLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(text, "0="), "M"), 10, 64)
	if err != nil {
		return 0
	}

	return n * mib
}

// hello connects, and reports the program's present memory.
func (j *gpuJob) hello() (wire.Answer, error) {
	conn, err := wire.Dial(j.path)
	if err != nil {
		return wire.Answer{}, err
	}

	a, err := conn.Ask(wire.Request{Op: wire.Hello, LimitBytes: j.limit, Bytes: j.held})
	if err == nil {
		j.conn, j.held = conn, a.HeldBytes
	}

	return a, err
}

// ask asks the card, and waits for the next worker when this one ended: a real card
// would not have noticed.
func (j *gpuJob) ask(r wire.Request) (wire.Answer, error) {
	a, err := j.conn.Ask(r)

	for began := time.Now(); err != nil && time.Since(began) < comeBack; {
		if code := rest(100 * time.Millisecond); code != 0 {
			return a, exitError(code)
		}

		var again wire.Answer
		if again, err = j.hello(); err != nil {
			continue
		}

		if again.Error != "" {
			return again, nil
		}

		a, err = j.conn.Ask(r)
	}

	if err == nil && a.Error == "" {
		j.held = a.HeldBytes
	}

	return a, err
}

// take takes memory for tensors. TensorFlow tries for a while before it gives up.
func (j *gpuJob) take(megabytes int) error {
	for began := time.Now(); ; {
		a, err := j.ask(wire.Request{Op: wire.Alloc, Bytes: int64(megabytes) * mib})

		switch {
		case err != nil:
			return err
		case a.Error == "":
			return nil
		case a.Error != wire.OutOfMemory:
			return j.died(a)
		case time.Since(began) >= j.retry:
			return tooLarge(megabytes)
		}

		if code := rest(100 * time.Millisecond); code != 0 {
			return exitError(code)
		}
	}
}

func tooLarge(megabytes int) error {
	warn(fmt.Sprintf("W external/local_xla/xla/tsl/framework/bfc_allocator.cc:502] Allocator (GPU_0_bfc) ran out of memory trying to allocate %d.00MiB (rounded to %d)requested by op Fill", megabytes, megabytes*mib))
	warn("tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:GPU:0}} OOM when allocating tensor with shape[" +
		strconv.Itoa(megabytes) + ",262144] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill]")

	return exitError(1)
}

// died is the end by an error that no program can get over.
func (*gpuJob) died(a wire.Answer) error {
	warn(fmt.Sprintf("tensorflow.python.framework.errors_impl.InternalError: Graph execution error: CUDA error: Error recording CUDA event: %s: %s", a.Error, a.Text))

	return exitError(1)
}

// step is one step on the GPU.
func (j *gpuJob) step(n int) error {
	r := wire.Request{Op: wire.Run, Step: &wire.Step{GPU: j.gpu, SM: j.sm, Bus: 0.1}}
	if n == j.faultAt {
		r = wire.Request{Op: wire.Crash}
	}

	a, err := j.ask(r)
	if err == nil && a.Error != "" {
		err = j.died(a)
	}

	return err
}

// reports is how often in its life the program says how it goes.
const reports = 10

// train runs all steps, and says how they go.
func (j *gpuJob) train(step func(n int) error) error {
	for n := 1; n <= j.allSteps(); n++ {
		if err := burn(j.cpu); err != nil {
			return err
		}

		if err := step(n); err != nil {
			return err
		}

		select {
		case <-j.terminated:
			return exitError(128 + int(syscall.SIGTERM))
		default:
		}

		if every := max(j.allSteps()/reports, 1); n%every == 0 {
			say(fmt.Sprintf(`{"step": %d, "val": %g}`, n, j.value*float64(n)/float64(j.allSteps())))
		}
	}

	return nil
}

// allSteps is less than wanted in a short probe, which Keras ends early.
func (j *gpuJob) allSteps() int {
	epochs, perEpoch := number(os.Getenv("KERAS_MAX_EPOCHS")), number(os.Getenv("KERAS_MAX_STEPS_PER_EPOCH"))
	if epochs > 0 && perEpoch > 0 {
		return min(j.steps, epochs*perEpoch)
	}

	return j.steps
}

// burn computes until this thread of the program has used this much processor
// time.
func burn(want time.Duration) error {
	began, err := cpuTime()
	if err != nil {
		return err
	}

	for sum := uint64(1); ; {
		for range 1 << 12 {
			sum = sum*6364136223846793005 + 1442695040888963407
		}

		now, err := cpuTime()
		if err != nil || now-began >= want || sum == 0 {
			return err
		}
	}
}

func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}
