//go:build integration

package runtimetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// manyCPUs makes a program see as many CPUs as FAKE_CPUS says, as on a large server.
const manyCPUs = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int cpus(void) { return atoi(getenv("FAKE_CPUS")); }

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
	if ((size_t)cpus() > 8 * size) { errno = EINVAL; return -1; }
	memset(set, 0, size);
	for (int i = 0; i < cpus(); i++) CPU_SET_S(i, size, set);
	return 0;
}

int get_nprocs(void) { return cpus(); }
int get_nprocs_conf(void) { return cpus(); }

long sysconf(int name) {
	if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF) return cpus();
	return ((long (*)(int))dlsym(RTLD_NEXT, "sysconf"))(name);
}
`

// kerasOnMany prints its value last: that all CPUs were seen, and all was trained.
const kerasOnMany = `
import os
import keras, numpy as np
x = np.random.default_rng(0).random((256, 8)).astype("float32")
y = (x.sum(1) > 4).astype("int32")
for compiled in False, True:
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=compiled)
    model.fit(x, y, validation_split=0.2, epochs=2, verbose=0)
print("val_accuracy=%d" % len(os.sched_getaffinity(0)))
`

// Frameworks start threads by the machine's CPUs, TensorFlow and XLA most, which no limit
// on a container's cores hides from them. On a server with 256 they train under Berth's
// own settings.
func TestManyCPUs(t *testing.T) {
	t.Parallel()

	outcome := onManyCPUs(t, 256)
	require.Equal(t, berth.FailureOK, outcome.Kind, outcome.Message)
	require.InDelta(t, 256, *outcome.Value, 0)
}

// The failure of a program that needs more threads than allowed says so, in
// TensorFlow's words.
func TestTooManyThreads(t *testing.T) {
	t.Parallel()

	outcome := onManyCPUs(t, 2)
	require.Equal(t, berth.FailureCrashed, outcome.Kind, outcome.Message)
	require.Contains(t, outcome.Message, "pthread_create() failed")
	require.Contains(t, outcome.Message, "a trial may have 512 processes and threads")
}

// onManyCPUs runs a Keras script that sees 256 CPUs, by a worker that knows of some.
func onManyCPUs(t *testing.T, known int) berth.Outcome {
	t.Helper()

	compiler, err := exec.LookPath("gcc")
	if err != nil {
		runtimetest.Skip(t, "there is no gcc")
	}

	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the trial's user reads it

	source := filepath.Join(dir, "cpus.c")
	require.NoError(t, os.WriteFile(source, []byte(manyCPUs), 0o600))

	out, err := exec.CommandContext(t.Context(), compiler, "-shared", "-fPIC", "-o", filepath.Join(dir, "cpus.so"), source, "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)

	a := newAttemptsOf(t, "berth-examples/tensorflow:1", known, nil, func(s *berth.Spec) {
		s.Command = []string{"python3", "-c", kerasOnMany}
		s.Metrics.Source = berth.MetricsAuto
		s.Datasets = []berth.DatasetMount{{Name: "cpus", Target: "/cpus"}}
		s.EnvironmentVariables = map[string]string{"LD_PRELOAD": "/cpus/cpus.so", "FAKE_CPUS": "256", "CUDA_VISIBLE_DEVICES": ""}
	})
	a.dataset = dir

	_, outcome := a.run(t, 1, 0, nil)

	return outcome
}
