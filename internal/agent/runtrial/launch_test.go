package runtrial

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// TestLaunch_Environment has every variable that a job may rely on.
func TestLaunch_Environment(t *testing.T) {
	t.Parallel()

	r := setup(t)
	env := r.launch(t).Environment

	for name, want := range map[string]string{
		"TRIAL_PARAMS_FILE":              "/trial/in/params.json",
		"TRIAL_METRICS_FILE":             "/trial/out/metrics.jsonl",
		"TRIAL_PARAM_LR":                 "0.1",
		"TRIAL_PARAM_UNITS":              "8",
		"TRIAL_SWEEP":                    "sweep",
		"TRIAL_ID":                       "trial",
		"TRIAL_NUMBER":                   "3",
		"TRIAL_ATTEMPT":                  "1",
		"TRIAL_MODE":                     "run",
		"TRIAL_CPUS":                     "0.5",
		"TF_FORCE_GPU_ALLOW_GROWTH":      "true",
		"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "128",
		"TF_CUDNN_WORKSPACE_LIMIT_IN_MB": "256",
		"XLA_PYTHON_CLIENT_PREALLOCATE":  "false",
		"OMP_NUM_THREADS":                "1",
		"OPENBLAS_NUM_THREADS":           "1",
		"MKL_NUM_THREADS":                "1",
		"TF_NUM_INTRAOP_THREADS":         "1",
		"TF_NUM_INTEROP_THREADS":         "1",
		"OMP_WAIT_POLICY":                "PASSIVE",
		"TF_CPP_MIN_LOG_LEVEL":           "1",
		"HOME":                           "/tmp",
		"PYTHONDONTWRITEBYTECODE":        "1",
	} {
		require.Equal(t, want, env[name], name)
	}

	require.Regexp(t, `^\d{1,10}$`, env["TRIAL_SEED"])

	for _, name := range []string{"TRIAL_RESUME", "TRIAL_DEVICE_MEMORY_MIB", "KERAS_MAX_EPOCHS"} {
		require.NotContains(t, env, name)
	}
}

// What libraries find besides is no part of what identifies a launch.
func TestLaunch_Defaults(t *testing.T) {
	t.Parallel()

	common := map[string]string{
		"USER": "trial", "PYTHON_CPU_COUNT": "1", "NPROC": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "LOGNAME": "trial", "WANDB_DIR": "/trial/out", "COLUMNS": "400",
		"TRITON_CACHE_DIR": "/trial/cache/triton", "TORCHINDUCTOR_CACHE_DIR": "/trial/cache/inductor", "TORCH_EXTENSIONS_DIR": "/trial/cache/extensions",
	}
	offline := map[string]string{"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
	maps.Copy(offline, common)

	for network, want := range map[bool]map[string]string{false: offline, true: common} {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Spec.Network = network })
		require.Equal(t, want, r.launch(t).Defaults)
	}
}

// A trial with a network is told of the host's proxy; what its sweep says of one wins,
// however it writes the name.
func TestLaunch_Proxy(t *testing.T) {
	t.Parallel()

	const proxy = "http://proxy:3128"

	r := setup(t)
	r.config.Proxy = proxy
	require.NotContains(t, r.launch(t).Defaults, "HTTP_PROXY", "it has no network")

	r = setup(t)
	r.config.Proxy = proxy
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Network, who.Spec.EnvironmentVariables = true, map[string]string{"https_proxy": "http://mine:1"}
	})

	got := r.launch(t)
	for name, want := range map[string]string{
		"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": "", "https_proxy": "",
		"NO_PROXY": "localhost,127.0.0.1,::1,169.254.169.254", "no_proxy": "localhost,127.0.0.1,::1,169.254.169.254",
	} {
		require.Equal(t, want, got.Defaults[name], name)
	}

	require.Equal(t, "http://mine:1", got.Environment["https_proxy"])
}

func TestLaunch_EnvironmentOfOtherAttempts(t *testing.T) {
	t.Parallel()

	r := setup(t)
	seed := r.launch(t).Environment["TRIAL_SEED"]
	r.writeCheckpoint(t, "model")

	r.books.place(t, "second", 2)
	r.books.says(func(who *berth.Assignee) {
		who.Attempt.Demand.DeviceBytes = 3 << 30
		who.Spec.Resources.CPUs = 2500
	})

	env := r.launchOf(t, berth.Order{AttemptID: "second", Token: token}).Environment
	require.Equal(t, seed, env["TRIAL_SEED"], "the seed is the trial's")
	require.Equal(t, "2", env["TRIAL_ATTEMPT"])
	require.Equal(t, "1", env["TRIAL_RESUME"])
	require.Equal(t, "3072", env["TRIAL_DEVICE_MEMORY_MIB"])
	require.Equal(t, "3", env["OMP_NUM_THREADS"], "whole threads for 2.5 cores")

	r.books.place(t, "third", 3)
	r.books.says(func(who *berth.Assignee) { who.Trial.Number++ })
	require.NotEqual(t, seed, r.launchOf(t, berth.Order{AttemptID: "third", Token: token}).Environment["TRIAL_SEED"])
}

func TestLaunch_UsersVariables(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) {
		who.Spec.EnvironmentVariables = map[string]string{
			"OMP_NUM_THREADS": "4", "HOME": "/home/me", "MINE": "x", "RATE": "lr={{lr}}", "TRIAL_ID": "forged", "TRIAL_PARAM_LR": "9",
		}
	})

	env := r.launch(t).Environment
	require.Equal(t, "4", env["OMP_NUM_THREADS"], "the user's wins over what is injected")
	require.Equal(t, "/home/me", env["HOME"])
	require.Equal(t, "x", env["MINE"])
	require.Equal(t, "lr=0.1", env["RATE"])
	require.Equal(t, "trial", env["TRIAL_ID"], "but not over the identity")
	require.Equal(t, "0.1", env["TRIAL_PARAM_LR"])
}

func TestLaunch(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Workdir, who.Spec.Network, who.Spec.Resources.ShmSize = "/src", true, 64<<20
	})

	l := r.launch(t)
	attempt := filepath.Join(r.dir, "attempts", attemptID)

	require.Equal(t, []string{"python", "train.py", "--lr=0.1"}, l.Command)
	require.Equal(t, []berth.Mount{
		{Source: filepath.Join(attempt, "in"), Target: "/trial/in", ReadOnly: true},
		{Source: filepath.Join(attempt, "out"), Target: "/trial/out"},
		{Source: filepath.Join(r.dir, "checkpoints", "trial"), Target: "/trial/checkpoint"},
	}, l.Mounts)

	require.NotNil(t, l.Shim)

	l.Command, l.Mounts, l.Environment, l.Defaults, l.Shim = nil, nil, nil, nil, nil
	require.Equal(t, berth.Launch{
		AttemptID: attemptID, SweepID: "sweep", TrialID: "trial", LeaseID: "lease-of-" + attemptID, Token: token, Image: imageID, Workdir: "/src",
		MemoryBytes: 1 << 30, ShmBytes: 64 << 20, CPUMilli: 500, Network: true,
	}, l)
}

func TestDirs_Make(t *testing.T) {
	t.Parallel()

	r := setup(t)
	d := r.newRun(t).dirs
	params := berth.Assignment{"n": berth.IntValue(1), "lr": berth.FloatValue(1)}
	require.NoError(t, d.make(params))
	require.NoError(t, os.WriteFile(filepath.Join(d.checkpoint, "model"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(d.out, "plot"), []byte("x"), 0o600))
	require.NoError(t, d.make(params), "again, as after a crash")

	for dir, mode := range map[string]os.FileMode{d.in: 0o755, d.out: 0o777, d.shim: 0o777, d.checkpoint: 0o777, filepath.Dir(d.in): 0o700} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), dir)
	}

	data, err := os.ReadFile(filepath.Join(d.in, paramsName))
	require.NoError(t, err)

	var got berth.Assignment

	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, params, got, "a whole float is still a float")

	entries, err := os.ReadDir(d.in)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")

	require.NoError(t, d.clean())
	require.NoDirExists(t, d.in)
	require.NoDirExists(t, d.shim)
	require.FileExists(t, filepath.Join(d.out, "plot"))
	require.FileExists(t, filepath.Join(d.checkpoint, "model"))
	require.NoError(t, d.clean())
}
