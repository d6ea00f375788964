package runtrial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// keras is as much of Keras as the shim meets: fit as Keras 3's trainers have it.
const keras = `
class History:
    def __init__(self):
        self.history = {}
    def on_epoch_end(self, epoch, logs):
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

class CallbackList:
    def __init__(self, callbacks):
        self.callbacks = list(callbacks) + [History()]
    def _all(self, hook, *args):
        for callback in self.callbacks:
            if hasattr(callback, hook):
                getattr(callback, hook)(*args)
    def on_train_begin(self, logs=None): self._all("on_train_begin")
    def on_train_end(self, logs=None): self._all("on_train_end")
    def on_train_batch_end(self, batch, logs=None): self._all("on_train_batch_end", batch)
    def on_test_begin(self, logs=None): self._all("on_test_begin")
    def on_test_end(self, logs=None): self._all("on_test_end")
    def on_test_batch_end(self, batch, logs=None): self._all("on_test_batch_end", batch)
    def on_epoch_end(self, epoch, logs=None): self._all("on_epoch_end", epoch, dict(logs or {}))
`

const trainer = `
from keras.src.callbacks.callback_list import CallbackList

def fit(epochs, initial_epoch=0, callbacks=(), batches=2):
    callbacks = CallbackList(callbacks)
    callbacks.on_train_begin()
    for epoch in range(initial_epoch, epochs):
        for batch in range(batches):
            callbacks.on_train_batch_end(batch)
        callbacks.on_test_begin()
        callbacks.on_test_batch_end(0)
        callbacks.on_test_end()
        callbacks.on_epoch_end(epoch, {"val_accuracy": (epoch + 1) / 8, "image": [[1]]})
    callbacks.on_train_end()
`

// snake is a place for scripts, with its modules in front of what Python finds.
type snake struct {
	python string
	dir    string
	env    []string
}

func python(t *testing.T) *snake {
	t.Helper()

	path, err := exec.LookPath("python3")
	if err != nil {
		runtimetest.Skip(t, "there is no python3 on this machine")
	}

	shim, err := setup(t).installShim()
	require.NoError(t, err)

	s := &snake{python: path, dir: t.TempDir()}
	s.env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+shim+":"+filepath.Join(s.dir, "lib"), "TRIAL_SHIM_FILE="+s.records())

	for _, name := range []string{"keras/__init__.py", "keras/src/__init__.py", "keras/src/callbacks/__init__.py"} {
		s.module(t, name, "")
	}

	s.module(t, "keras/src/callbacks/callback_list.py", keras)
	s.module(t, "keras/src/trainer.py", trainer)

	return s
}

func (s *snake) records() string { return filepath.Join(s.dir, "records") }

func (s *snake) module(t *testing.T, name, text string) {
	t.Helper()

	path := filepath.Join(s.dir, "lib", name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// command runs a script from its file; options come before it.
func (s *snake) command(t *testing.T, script string, options ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()

	path := filepath.Join(s.dir, "script.py")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))

	cmd := exec.CommandContext(t.Context(), s.python, append(options, path)...)
	cmd.Env = s.env
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out

	return cmd, out
}

// run runs a script and returns its exit code, minus the signal's number when one
// ended it, and what it printed.
func (s *snake) run(t *testing.T, script string, options ...string) (int, string) {
	t.Helper()

	cmd, out := s.command(t, script, options...)

	return exitOf(t, cmd.Run()), out.String()
}

func exitOf(t *testing.T, err error) int {
	t.Helper()

	if err == nil {
		return 0
	}

	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, err)

	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}

	return exit.ExitCode()
}

type shimRecord struct {
	Type    string             `json:"type"`
	Kind    string             `json:"kind"`
	Step    int64              `json:"step"`
	Epoch   int64              `json:"epoch"`
	Fit     int                `json:"fit"`
	Peak    int64              `json:"device_peak_bytes"`
	Metrics map[string]float64 `json:"metrics"`
	Phase   string             `json:"phase"`
	At      float64            `json:"at"`
	Count   int                `json:"count"`
	Seconds float64            `json:"seconds"`
	Digest  string             `json:"digest"`
	Epochs  int                `json:"epochs"`
}

// said are the records but for those of phases and steps.
func (s *snake) said(t *testing.T) []shimRecord {
	t.Helper()

	return slices.DeleteFunc(s.all(t), func(r shimRecord) bool { return slices.Contains([]string{typePhase, typeSteps, typeFirstFit}, r.Type) })
}

func (s *snake) all(t *testing.T) []shimRecord {
	t.Helper()

	data, err := os.ReadFile(s.records())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}

	require.NoError(t, err)

	var all []shimRecord

	for line := range strings.Lines(string(data)) {
		var r shimRecord
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		all = append(all, r)
	}

	return all
}

// Two fits that both begin at epoch 0, one that goes on, and a metric that a callback adds: no
// step is there twice. A fit that fails, and one inside a callback of another, give no rows.
func TestShimPython_EpochsBecomeRecords(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, `
from keras.src.trainer import fit
class F1:
    def on_epoch_end(self, epoch, logs): logs["f1"] = 0.5
class Bad:
    def on_train_batch_end(self, batch): 1 / 0
class Failing:
    def on_epoch_end(self, epoch, logs): fails()
class Inner:
    def on_epoch_end(self, epoch, logs): fit(3)
def fails():
    try:
        fit(1, callbacks=[Bad()])
    except ZeroDivisionError:
        pass
fit(2, callbacks=[F1()])
fails()
fit(3, initial_epoch=2, callbacks=[Inner(), Failing(), Inner()])
fit(1)
`)
	require.Zero(t, code, out)
	require.Equal(t, []shimRecord{
		{Type: "hello"},
		{Type: "metric", Step: 1, Epoch: 0, Fit: 1, Metrics: map[string]float64{"val_accuracy": 0.125, "f1": 0.5}},
		{Type: "metric", Step: 2, Epoch: 1, Fit: 1, Metrics: map[string]float64{"val_accuracy": 0.25, "f1": 0.5}},
		{Type: "metric", Step: 3, Epoch: 2, Fit: 3, Metrics: map[string]float64{"val_accuracy": 0.375}},
		{Type: "metric", Step: 4, Epoch: 0, Fit: 4, Metrics: map[string]float64{"val_accuracy": 0.125}},
	}, s.said(t))
}

// Phases are told when they begin, and the steps of each epoch but its first: a fit
// inside a callback is part of its epoch, and an evaluation of its own is no training.
func TestShimPython_PhasesAndSteps(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, `
import time
from keras.src.trainer import fit, CallbackList
class Inner:
    def on_epoch_end(self, epoch, logs): fit(1)
class Slow:
    def on_train_batch_end(self, batch): time.sleep(0.02)
fit(2, callbacks=[Inner(), Slow()], batches=4)
alone = CallbackList([])
alone.on_test_begin()
alone.on_test_end()
`)
	require.Zero(t, code, out)

	var told []string

	last := 0.0

	for _, r := range s.all(t) {
		switch r.Type {
		case typePhase:
			told = append(told, r.Phase)
			require.Greater(t, r.At, last)
			require.WithinDuration(t, time.Now(), time.UnixMicro(int64(r.At*1e6)), time.Minute)
			last = r.At
		case typeSteps:
			told = append(told, fmt.Sprint(r.Count, " steps"))
			require.Greater(t, r.Seconds, 3*0.02)
			require.Less(t, r.Seconds, 10.0)
		}
	}

	require.Equal(t, []string{
		"training", "validation", "training", "3 steps", "validation", "training", "3 steps", "other", "validation", "other",
	}, told)
}

// The first of several fits is told when the second begins, with a digest of its rows; one that
// failed, or that no other follows, is not told.
func TestShimPython_FirstFit(t *testing.T) {
	t.Parallel()

	const head = `
import time
from keras.src.trainer import fit
class Scaled:
    def __init__(self, by): self.by = by
    def on_epoch_end(self, epoch, logs): logs["f1"] = self.by / 3
class Slow:
    def on_train_batch_end(self, batch): time.sleep(0.02)
class Bad:
    def on_train_batch_end(self, batch): 1 / 0
`

	first := func(script string) *shimRecord {
		s := python(t)
		code, out := s.run(t, head+script)
		require.Zero(t, code, out)

		all := slices.DeleteFunc(s.all(t), func(r shimRecord) bool { return r.Type != typeFirstFit })
		if len(all) == 0 {
			return nil
		}

		require.Len(t, all, 1)

		return &all[0]
	}

	one := first("fit(2, callbacks=[Scaled(1.0)])\nfit(1)\nfit(1)")
	require.Equal(t, 2, one.Epochs)
	require.Equal(t, "8d772f93b82a84dc22562191e8c09726c283d31e75c638c8a296c4f7d368d775", one.Digest)
	require.Positive(t, one.Seconds)

	slow := first("fit(2, callbacks=[Scaled(1.0), Slow()])\nfit(3, initial_epoch=2)")
	require.Equal(t, one.Digest, slow.Digest, "times and what follows do not count")
	require.Greater(t, slow.Seconds, 4*0.02)

	for _, other := range []string{"2, callbacks=[Scaled(1.0000000000000002)]", "1, callbacks=[Scaled(1.0)]", "3, initial_epoch=1, callbacks=[Scaled(1.0)]", "2"} {
		require.NotEqual(t, one.Digest, first("fit("+other+")\nfit(1)").Digest, other)
	}

	require.Nil(t, first("fit(2)"))
	require.Nil(t, first("try:\n    fit(1, callbacks=[Bad()])\nexcept ZeroDivisionError:\n    pass\nfit(1)\nfit(1)"))
}

// The first second of steps is told at once, before the epoch ends.
func TestShimPython_FirstSteps(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, `
import time
from keras.src.trainer import fit
class Slow:
    def on_train_batch_end(self, batch): time.sleep(0.3)
fit(1, callbacks=[Slow()], batches=8)
`)
	require.Zero(t, code, out)

	var told []string

	steps := 0

	for _, r := range s.all(t) {
		if told = append(told, r.Type); r.Type == typeSteps {
			steps += r.Count
		}
	}

	require.Equal(t, []string{"hello", typePhase, typeSteps, typePhase, typePhase, typeSteps, "metric", typePhase}, told)
	require.Equal(t, 7, steps)
}

// A fit that an exception ended is over; of two at once one counts; and a script that
// calls fit for each sample leaves room for its metrics.
func TestShimPython_PhasesEnd(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, `
import threading, time
from keras.src.trainer import fit, CallbackList
class Bad:
    def on_train_batch_end(self, batch): 1 / 0
class Slow:
    def on_train_batch_end(self, batch): time.sleep(0.001)
try:
    fit(1, callbacks=[Bad()])
except ZeroDivisionError:
    pass
alone = CallbackList([])
alone.on_test_begin()
alone.on_test_end()
threads = [threading.Thread(target=fit, args=(1,), kwargs={"batches": 50, "callbacks": [Slow()]}) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
for _ in range(6000):
    fit(1)
`)
	require.Zero(t, code, out)

	var phases []string

	steps, told := 0, 0

	for _, r := range s.all(t) {
		switch r.Type {
		case typePhase:
			phases, told = append(phases, r.Phase), told+1
		case typeSteps:
			steps, told = max(steps, r.Count), told+1
		}
	}

	require.Equal(t, []string{"training", "validation", "other"}, phases[:3])
	require.LessOrEqual(t, steps, 2*49)
	require.Equal(t, 10_000, told)
	require.Len(t, s.said(t), 1+2+6000, "the metrics of all")
}

// A worker process of the program reports nothing, however it was started; one
// program after the other does.
func TestShimPython_OnlyTheMainProcessReports(t *testing.T) {
	t.Parallel()

	s := python(t)
	code, out := s.run(t, `
import multiprocessing, os, subprocess, sys
from keras.src.trainer import fit
if __name__ == "__main__":
    for how in ("spawn", "fork"):
        worker = multiprocessing.get_context(how).Process(target=fit, args=(1,))
        worker.start(); worker.join()
        assert worker.exitcode == 0, how
    subprocess.run([sys.executable, "-c", "from keras.src.trainer import fit; fit(1); import this_is_not_there"], stderr=subprocess.DEVNULL)
    if "AGAIN" not in os.environ:
        os.environ["AGAIN"] = "1"
        os.execv(sys.executable, [sys.executable] + sys.argv)
    fit(1)
`)
	require.Zero(t, code, out)

	var types []string
	for _, r := range s.said(t) {
		types = append(types, r.Type)
	}

	require.Equal(t, []string{"hello", "hello", "metric"}, types, "exec keeps the process")
}

func TestShimPython_ExitCodes(t *testing.T) {
	t.Parallel()

	tf := "class ResourceExhaustedError(Exception): pass\nResourceExhaustedError.__module__ = 'tensorflow.python.framework.errors_impl'\n"
	torch := "class OutOfMemoryError(RuntimeError): pass\nOutOfMemoryError.__module__ = 'torch'\n"

	for name, c := range map[string]struct {
		script string
		code   int
		kind   string
	}{
		"GPU":                  {tf + "raise ResourceExhaustedError('OOM when allocating tensor with shape[1] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc')", 86, "device_oom"},
		"TensorFlow's host":    {tf + "raise ResourceExhaustedError('OOM when allocating tensor with shape[1] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu')", 87, "host_oom"},
		"a full disk":          {tf + "raise ResourceExhaustedError('/trial/out/x; No space left on device')", 1, ""},
		"torch":                {torch + "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB')", 86, "device_oom"},
		"a context of torch":   {"class AcceleratorError(RuntimeError): pass\nraise AcceleratorError('CUDA error: out of memory\\nCUDA kernel errors might be')", 86, "device_oom"},
		"XGBoost":              {"class XGBoostError(ValueError): pass\nraise XGBoostError('Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory')", 86, "device_oom"},
		"LightGBM":             {"raise Exception('[CUDA] out of memory /tmp/x.cu 54')", 86, "device_oom"},
		"CuPy":                 {"class OutOfMemoryError(MemoryError): pass\nOutOfMemoryError.__module__ = 'cupy.cuda.memory'\nraise OutOfMemoryError('Out of memory allocating 8,589,934,592 bytes')", 86, "device_oom"},
		"RMM":                  {"raise MemoryError('std::bad_alloc: out_of_memory: RMM failure at:pool_memory_resource.hpp:193: Maximum pool size exceeded')", 86, "device_oom"},
		"torch's host":         {"raise RuntimeError(\"[enforce fail] . DefaultCPUAllocator: can't allocate memory\")", 87, "host_oom"},
		"Python's host":        {"bytearray(1 << 60)", 87, "host_oom"},
		"another exception":    {"raise ValueError('MemoryError')", 1, ""},
		"one that it got over": {torch + "try:\n    raise OutOfMemoryError('x')\nexcept Exception as e:\n    raise ValueError('no') from e", 1, ""},
		"one of a thread":      {"import threading\ndef f(): raise MemoryError\nt = threading.Thread(target=f); t.start(); t.join()", 0, ""},
		"sys.exit":             {"import sys; sys.exit(3)", 3, ""},
		"the script's hook":    {"import sys\nsys.excepthook = lambda *a: print('Traceback: mine', a[0].__name__)\nraise MemoryError", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := python(t)
			code, out := s.run(t, c.script)
			require.Equal(t, c.code, code, out)

			if code != 0 && code != 3 {
				require.Contains(t, out, "Traceback")
				require.NotContains(t, out, "sys.excepthook", "Python knows a hook that ends the program")
			}

			last := s.said(t)[len(s.said(t))-1]
			require.Equal(t, c.kind, last.Kind)
		})
	}
}

// Frameworks are imported without the garbage collector, which is as before once they are
// there, also when an import fails, within another one, or in several threads.
func TestShimPython_CollectorDuringImports(t *testing.T) {
	t.Parallel()

	const says = "import gc\nprint('%s', gc.isenabled())\n"

	for name, c := range map[string]struct{ script, want string }{
		"one":            {"import torch", "torch False\nend True\n"},
		"one in another": {"import jax", "tensorflow False\njax False\nend True\n"},
		"one that fails": {"try:\n    import tf_keras\nexcept ValueError: pass", "tf_keras False\nend True\n"},
		"a submodule":    {"import torch.nn", "torch False\nnn True\nend True\n"},
		"another module": {"import other", "other True\nend True\n"},
		"what is there":  {"import gc\nimport torch\nprint(gc.get_freeze_count() > 1000, gc.get_count()[0] < 700)", "torch False\nTrue True\nend True\n"},
		"it was off":     {"import gc\ngc.disable()\nimport torch", "torch False\nend False\n"},
		"two threads": { // torch is imported while another thread imports Keras
			"import threading, gc, sync\nt = threading.Thread(target=__import__, args=('keras',))\nt.start()\nsync.begun.wait()\n" +
				"import torch\nprint('between', gc.isenabled())\nsync.go_on.set()\nt.join()",
			"torch False\nbetween False\nend True\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := python(t)
			s.module(t, "torch/__init__.py", fmt.Sprintf(says, "torch"))
			s.module(t, "torch/nn.py", fmt.Sprintf(says, "nn"))
			s.module(t, "tensorflow.py", fmt.Sprintf(says, "tensorflow"))
			s.module(t, "jax.py", "import tensorflow\n"+fmt.Sprintf(says, "jax"))
			s.module(t, "tf_keras.py", fmt.Sprintf(says, "tf_keras")+"raise ValueError\n")
			s.module(t, "other.py", fmt.Sprintf(says, "other"))
			s.module(t, "sync.py", "import threading\nbegun, go_on = threading.Event(), threading.Event()\n")
			s.module(t, "keras/__init__.py", "import sync\nsync.begun.set()\nsync.go_on.wait()\n")

			code, out := s.run(t, c.script+"\n"+fmt.Sprintf(says, "end"))
			require.Zero(t, code, out)
			require.Equal(t, c.want, out)
		})
	}
}

// stoppedFit trains for ever, and says when a batch has begun.
const stoppedFit = `
import os, signal, sys, time
from keras.src.trainer import fit
class Batch:
    def on_train_batch_end(self, batch):
        print("began", flush=True)
        time.sleep(1)
        print("saved", flush=True)
`

func TestShimPython_Stop(t *testing.T) {
	t.Parallel()

	own := "signal.signal(signal.SIGTERM, lambda *a: sys.exit(9))\n"

	for name, c := range map[string]struct {
		script string
		code   int
		says   string
	}{
		"between two batches":     {stoppedFit + "fit(9, callbacks=[Batch()], batches=99)\nprint('result')", 75, "began\nsaved\nberth: stopped on request"},
		"a handler of its own":    {stoppedFit + own + "fit(9, callbacks=[Batch()], batches=99)", 9, "began\n"},
		"one that it sets later":  {stoppedFit + "class Own:\n    def on_train_begin(self):\n        " + own + "fit(9, callbacks=[Own(), Batch()], batches=99)", 9, "began\n"},
		"without Keras":           {"import time\nprint('began', flush=True)\ntime.sleep(60)", -int(syscall.SIGTERM), "began\n"},
		"between two fits":        {stoppedFit + "fit(1)\nprint('began', flush=True)\ntime.sleep(60)", -int(syscall.SIGTERM), "began\n"},
		"after a fit that failed": {stoppedFit + "class Bad:\n    def on_train_batch_end(self, batch): 1 / 0\ntry:\n    fit(1, callbacks=[Bad()])\nexcept ZeroDivisionError:\n    pass\nprint('began', flush=True)\ntime.sleep(60)", -int(syscall.SIGTERM), "began\n"},
		"in a fit inside a callback": {
			stoppedFit + "class Small:\n    def on_epoch_end(self, epoch, logs):\n        fit(1, callbacks=[Batch()], batches=1)\nclass Whole:\n    def on_epoch_end(self, epoch, logs): print('whole epoch')\nfit(9, callbacks=[Small(), Whole()])",
			75, "began\nsaved\nwhole epoch\nberth: stopped on request",
		},
		"a script that catches it and goes on": {
			stoppedFit + "try:\n    fit(9, callbacks=[Batch()], batches=99)\nexcept:\n    pass\nfit(1)\nprint('result')",
			-int(syscall.SIGTERM), "began\nsaved\nberth: stopped on request",
		},
		"in a validation": {
			stoppedFit + "class Test:\n    def on_test_batch_end(self, batch):\n        print('began', flush=True); time.sleep(1)\n    def on_epoch_end(self, epoch, logs): print('whole epoch')\nfit(9, callbacks=[Test()])",
			75, "began\nwhole epoch\nberth: stopped on request",
		},
	} {
		stopsAs := func(t *testing.T, env string) {
			t.Helper()

			s := python(t)
			cmd, out := s.command(t, c.script)
			cmd.Env = append(cmd.Env, "PYTHONUNBUFFERED=1", env)
			said, err := os.Create(filepath.Join(s.dir, "out"))
			require.NoError(t, err)

			defer said.Close() //nolint:errcheck // read by its name

			cmd.Stdout, cmd.Stderr = said, said

			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool {
				data, err := os.ReadFile(said.Name())

				return err == nil && bytes.Contains(data, []byte("began"))
			}, time.Minute, 10*time.Millisecond, out)
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.Equal(t, c.code, exitOf(t, cmd.Wait()))

			data, err := os.ReadFile(said.Name())
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(data), c.says), string(data))
			require.NotContains(t, string(data), "result")
		}

		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopsAs(t, "A=b")
		})
		t.Run(name+", by MPS", func(t *testing.T) {
			t.Parallel()
			stopsAs(t, "CUDA_MPS_PIPE_DIRECTORY=/trial/mps")
		})
	}
}

// A client of MPS waits for its kernels before it ends, however that comes; a process that
// it forked has none, and other programs are left alone.
func TestShimPython_Drain(t *testing.T) {
	t.Parallel()

	drain := "import os, signal, sys, torch\nfrom berth_shim import drain\ndrain._synchronize = lambda: print('drained', flush=True)\n"
	term := "os.kill(os.getpid(), signal.SIGTERM)\n"

	for name, c := range map[string]struct {
		script string
		sliced bool
		code   int
		says   string
	}{
		"SIGTERM":              {script: term, code: -15, says: "drained\n"},
		"an exception":         {script: "try:\n    1 / 0\nexcept ZeroDivisionError:\n    sys.exit(3)", code: 3, says: "drained\n"},
		"its end":              {script: "print('end')", says: "end\ndrained\n"},
		"a handler of its own": {script: "signal.signal(signal.SIGTERM, lambda *a: sys.exit(9))\n" + term, code: 9, says: "drained\n"},
		"a child":              {script: "if os.fork() == 0:\n    " + term + "os.wait()\nprint('parent', flush=True)\nos._exit(0)", says: "parent\n"},
		"by time slices":       {script: term, sliced: true, code: -15},
		"a driver that fails":  {script: "def fail(): raise OSError\ndrain._synchronize = fail\n" + term, code: -15},
		"no driver":            {script: "import importlib; importlib.reload(drain); drain.start()\n" + term, code: -15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := python(t)
			s.module(t, "torch.py", "")

			if !c.sliced {
				s.env = append(s.env, "CUDA_MPS_PIPE_DIRECTORY=/trial/mps")
			}

			code, out := s.run(t, drain+c.script)
			require.Equal(t, c.code, code, out)
			require.Equal(t, c.says, out)
		})
	}
}

// What Python does without the shim it does with it: sys.path, the sitecustomize
// that it would have run, and that one's errors.
func TestShimPython_LeavesPythonAsItIs(t *testing.T) {
	t.Parallel()

	look := "import sys; print(sys.path); print(sys.modules.get('sitecustomize')); import sitecustomize; print(sitecustomize.who)"

	for name, other := range map[string]string{
		"another sitecustomize": "who = 'the user'; print('ran')",
		"one that fails":        "1 / 0",
		"one with a hook":       "import sys\nwho = 'hook'\nsys.excepthook = lambda *a: print('hooked')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := python(t)
			s.module(t, "sitecustomize.py", other)

			code, with := s.run(t, look)
			hello := len(s.said(t))

			s.env = append(s.env, "PYTHONPATH="+filepath.Join(s.dir, "lib"))
			without, want := s.run(t, look)
			require.Equal(t, want, with)
			require.Equal(t, without, code)
			require.Equal(t, 1, hello)
			require.Len(t, s.said(t), hello, "the second ran without the shim")
		})
	}

	t.Run("its hook goes on printing", func(t *testing.T) {
		t.Parallel()

		s := python(t)
		s.module(t, "sitecustomize.py", "import sys\nsys.excepthook = lambda *a: print('hooked')")

		code, out := s.run(t, "raise MemoryError")
		require.Equal(t, 87, code)
		require.Equal(t, "hooked\n", out)
	})
}

func TestShimPython_NothingBreaksWithoutIt(t *testing.T) {
	t.Parallel()

	for _, option := range []string{"-I", "-E", "-S"} {
		s := python(t)
		code, out := s.run(t, "print('fine')", option)
		require.Zero(t, code)
		require.Equal(t, "fine\n", out)
		require.Empty(t, s.said(t), option)
	}

	for name, records := range map[string]string{
		"not writable": "/proc/nothing", "a directory": "/", "not wanted": "",
	} {
		s := python(t)
		s.env = append(s.env, "TRIAL_SHIM_FILE="+records)
		code, out := s.run(t, "from keras.src.trainer import fit\nfit(1)\nprint('fine')")
		require.Zero(t, code, name)
		require.Equal(t, "fine\n", out, name)
	}

	// A pipe that no one reads must not hold the program.
	s := python(t)
	require.NoError(t, syscall.Mkfifo(s.records(), 0o600))

	code, out := s.run(t, "print('fine')")
	require.Zero(t, code)
	require.Equal(t, "fine\n", out)
}

// The peaks are read when the program ends, before the framework has gone, and
// only of one that has touched a GPU.
func TestShimPython_FrameworkPeak(t *testing.T) {
	t.Parallel()

	for touched, want := range map[string]int64{"True": 4096 + 1024, "False": 0} {
		s := python(t)
		s.module(t, "torch/__init__.py", "import atexit\nfrom torch import cuda\natexit.register(cuda.close)\n")
		s.module(t, "torch/cuda/__init__.py", `
touched = `+touched+`
def is_initialized(): return touched
def close():
    global touched
    touched = False
def device_count(): return 2
def max_memory_allocated(n): return (4096, 1024)[n]
`)

		code, out := s.run(t, "import torch\ntorch")
		require.Zero(t, code, out)

		said := s.said(t)
		require.Equal(t, want, said[len(said)-1].Peak)
	}
}

// What the shim imports before the script starts hides no module of the script's: a
// project may have a signal.py of its own. A hook of the script's that calls the one of
// before runs to its end, and one that could not say why ends with 1.
func TestShimPython_LeavesModulesAndHooks(t *testing.T) {
	t.Parallel()

	s := python(t)
	for _, name := range []string{"signal", "warnings"} { // beside the script, which the shim starts before
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name+".py"), []byte("def load():\n    return 'own'\n"), 0o600))
	}

	code, printed := s.run(t, "import signal\nprint(signal.load())\n")
	require.Equal(t, 0, code, printed)
	require.Contains(t, printed, "own")

	loaded := python(t)
	look := "import sys; print(*sorted(name for name in sys.modules if name not in sys.builtin_module_names))"
	code, with := loaded.run(t, look)
	require.Zero(t, code, with)
	require.Len(t, loaded.said(t), 1)

	loaded.env = append(loaded.env, "PYTHONPATH="+filepath.Join(loaded.dir, "lib"))
	_, without := loaded.run(t, look)

	for name := range strings.FieldsSeq(with) {
		if name != "sitecustomize" && name != "berth_shim" && !strings.HasPrefix(name, "berth_shim.") {
			require.Contains(t, strings.Fields(without), name, "it would hide the script's own")
		}
	}

	chained := python(t)
	code, printed = chained.run(t, "import sys\nold = sys.excepthook\ndef hook(*a):\n    old(*a)\n    print('cleaned up')\nsys.excepthook = hook\nraise MemoryError()\n")
	require.Equal(t, 1, code, printed)
	require.Contains(t, printed, "cleaned up")

	mute := python(t)
	code, printed = mute.run(t, "import os\nfrom berth_shim import records\nrecords._path = '/proc/nothing'\nraise MemoryError()\n")
	require.Equal(t, 1, code, printed)
}
