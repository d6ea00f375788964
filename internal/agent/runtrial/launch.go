package runtrial

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

// How a job is told whether it is a short probe.
const (
	modeVariable = "TRIAL_MODE"
	modeRun      = "run"
	modeProbe    = "probe"
)

// prepare makes the attempt's directories and says what its container is: the
// same at every call, however the host and Berth change in between.
func (r *run) prepare(ctx context.Context) (berth.Launch, error) {
	launch, found := r.dirs.launch(r.order.Token)

	if !found {
		var err error

		if err = r.resume(ctx); err != nil {
			return berth.Launch{}, err
		}

		if launch, err = r.newLaunch(ctx); err != nil {
			return berth.Launch{}, err
		}

		if err := r.addEntrypoint(ctx, &launch); err != nil {
			return berth.Launch{}, err
		}

		if err := r.addWorkdir(ctx, &launch); err != nil {
			return berth.Launch{}, err
		}

		r.keepLaunch(launch)
	}

	r.dirs.copied = r.dirs.workFiles().Bytes

	if err := r.placeSecrets(ctx, launch, r.dirs.prepared()); err != nil {
		return berth.Launch{}, err
	}

	err := r.dirs.make(r.who.Trial.Params)
	if err != nil && found && r.dirs.prepared() { // its container has all that it needs
		r.log.Warn("preparing an attempt that was prepared before; going on", "attempt", r.who.Attempt.ID, "error", err)

		return launch, nil
	}

	if err != nil {
		return berth.Launch{}, berth.Errorf(berth.KindUnavailable, "preparing attempt %s: %w", r.who.Attempt.ID, err)
	}

	return launch, nil
}

// keepLaunch writes the launch down. Without the file the next call makes a new
// launch, and the token alone identifies the container.
func (r *run) keepLaunch(l berth.Launch) {
	if err := r.dirs.keepLaunch(l); err != nil {
		r.log.Warn("writing launch down", "attempt", r.who.Attempt.ID, "error", err)
	}
}

// noteContainer keeps what the launch made, or found: the hash on its label, by
// which it is known again, and the directories that it has.
func (r *run) noteContainer(l berth.Launch) {
	r.dirs = r.dirs.mounted(r.container.Mounts)
	r.knowSecrets()

	if l.SpecHash == "" && r.container.SpecHash != "" {
		l.SpecHash = r.container.SpecHash
		r.keepLaunch(l)
	}
}

// newLaunch is what the attempt's container is, computed anew.
func (r *run) newLaunch(ctx context.Context) (berth.Launch, error) {
	s := r.who.Spec

	command, err := argv.Render(s, r.who.Trial.Params)
	if err != nil {
		return berth.Launch{}, err
	}

	user, err := argv.Environment(s, r.who.Trial.Params)
	if err != nil {
		return berth.Launch{}, err
	}

	demand := r.who.Attempt.Demand

	launch := berth.Launch{
		AttemptID:   r.who.Attempt.ID,
		SweepID:     r.who.SweepID,
		TrialID:     r.who.Trial.ID,
		LeaseID:     r.who.LeaseID,
		Token:       r.order.Token,
		Image:       r.who.ImageDigest,
		Command:     command,
		Workdir:     s.Workdir,
		Environment: r.environment(user),
		Defaults:    r.defaults(user),
		Mounts: []berth.Mount{
			{Source: r.dirs.in, Target: mountIn, ReadOnly: true},
			{Source: r.dirs.out, Target: mountOut},
			{Source: r.dirs.checkpoint, Target: mountCheckpoint},
		},
		MemoryBytes: demand.MemoryBytes,
		ShmBytes:    int64(s.Resources.ShmSize),
		CPUMilli:    demand.CPUMilli,
		Network:     s.Network,
		DeviceID:    r.who.Attempt.DeviceID,
		DeviceBytes: demand.DeviceBytes,
	}

	if launch.DeviceID != "" { // fewer cores are booked than it may keep busy
		launch.CPUCapMilli = r.capMilli()
	}

	if err := r.addDatasets(ctx, &launch); err != nil {
		return berth.Launch{}, err
	}

	if err := r.addInputs(ctx, &launch); err != nil {
		return berth.Launch{}, err
	}

	r.addSecrets(&launch)

	if s.WantsShim() {
		if err := r.addShim(&launch); err != nil {
			return berth.Launch{}, err
		}
	}

	return launch, r.share(&launch)
}

// environment is what a job finds in its environment. What the user set wins
// over what is injected only so that unchanged scripts behave; identity and paths are
// ours (the validator refuses TRIAL_* and what would break packing).
func (r *run) environment(user map[string]string) map[string]string {
	env := frameworkDefaults(r.threads())
	maps.Copy(env, user)
	r.spill(env, user)

	trial := r.who.Trial
	mode := modeRun

	if r.short {
		mode = modeProbe
		// Keras ≥ 3.10 ends after two short epochs: train, validate, checkpoint,
		// second epoch.
		env["KERAS_MAX_EPOCHS"] = "2"
		env["KERAS_MAX_STEPS_PER_EPOCH"] = "30"
	}

	if r.ofStage() {
		env["TRIAL_SEED"] = strconv.FormatInt(seedOf(r.who.StageKey), 10) // the same for all trials that share the stage
	} else {
		maps.Copy(env, map[string]string{
			"TRIAL_SWEEP":   r.who.SweepID,
			"TRIAL_ID":      trial.ID,
			"TRIAL_NUMBER":  strconv.Itoa(trial.Number),
			"TRIAL_ATTEMPT": strconv.Itoa(r.who.Attempt.Number),
			"TRIAL_SEED":    strconv.FormatInt(trialSeed(r.who.Spec.Search.Seed, trial.Number), 10),
		})
	}

	maps.Copy(env, map[string]string{
		modeVariable:         mode,
		"TRIAL_CPUS":         strconv.FormatFloat(float64(r.who.Attempt.Demand.CPUMilli)/1000, 'f', -1, 64),
		"TRIAL_PARAMS_FILE":  mountIn + "/" + paramsName,
		"TRIAL_METRICS_FILE": mountOut + "/" + metricsName,
	})

	if len(r.who.Spec.Stages) > 0 { // else a script does all that it does by hand
		env["TRIAL_STAGE"] = r.who.Attempt.Stage
	}

	if r.who.Attempt.Demand.DeviceBytes > 0 {
		env["TRIAL_DEVICE_MEMORY_MIB"] = strconv.FormatInt(r.who.Attempt.Demand.DeviceBytes>>20, 10)
	}

	if r.resumes() {
		env[resumeVariable] = "1"
	}

	for name, value := range trial.Params {
		env["TRIAL_PARAM_"+strings.ToUpper(name)] = value.String()
	}

	return env
}

// threads is how many threads libraries may start: the reserved cores, rounded
// up. Jobs that each start a thread per core of a full machine are five times
// slower: measured 118.8 s against 25.2 s.
func (r *run) threads() string {
	return strconv.FormatInt(berth.Threads(r.who.Spec.Resources.ThreadCapMilli()), 10)
}

func frameworkDefaults(threads string) map[string]string {
	return map[string]string{
		"TF_FORCE_GPU_ALLOW_GROWTH":      "true",
		"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "128",
		"TF_CUDNN_WORKSPACE_LIMIT_IN_MB": "256",
		"XLA_PYTHON_CLIENT_PREALLOCATE":  "false",
		"OMP_NUM_THREADS":                threads,
		"OPENBLAS_NUM_THREADS":           threads,
		"MKL_NUM_THREADS":                threads,
		"TF_NUM_INTRAOP_THREADS":         threads,
		"TF_NUM_INTEROP_THREADS":         threads,
		"OMP_WAIT_POLICY":                "PASSIVE",
		"TF_CPP_MIN_LOG_LEVEL":           "1",
		"HOME":                           "/tmp",
		"PYTHONDONTWRITEBYTECODE":        "1",
		"PYTHONUNBUFFERED":               "1", // so that metrics on stdout arrive while the job runs
	}
}

// jobUser is who a job is, to programs that ask for a name.
const jobUser = "trial"

// columns is how wide programs take the terminal that they do not have. Rich breaks lines there,
// by default at 80: names are parted from their splits, secrets into pieces that nothing knows.
// RichHandler takes 40 for itself; the rest holds ten metrics by name.
const columns = "400"

// defaults are what libraries find in the environment unless the user says otherwise.
// They are no part of what identifies a launch: add new ones here, or a version of
// Berth that goes back does not know its own containers.
func (r *run) defaults(user map[string]string) map[string]string {
	env := map[string]string{
		"USER":                    jobUser, // getpass.getuser and what uses it look here first: the image does not know our user
		"LOGNAME":                 jobUser,
		"TRITON_CACHE_DIR":        berth.CacheDir + "/triton", // what is compiled there is run; /tmp is noexec
		"TORCHINDUCTOR_CACHE_DIR": berth.CacheDir + "/inductor",
		"TORCH_EXTENSIONS_DIR":    berth.CacheDir + "/extensions",
		"PYTHON_CPU_COUNT":        r.threads(), // os.cpu_count() since Python 3.13, by which loaders size their pools
		"NPROC":                   r.threads(), // XLA's pools under JAX: 554 threads on 256 CPUs, 46 with it
		"WANDB_DIR":               mountOut,    // default: the working directory, which may be read-only
		"COLUMNS":                 columns,

		"TORCHINDUCTOR_COMPILE_THREADS": r.threads(), // torch.compile starts a process for each CPU, 32 at the most
	}

	if !r.who.Spec.Network { // else libraries wait for a server, or fail
		maps.Copy(env, map[string]string{
			"WANDB_MODE":           "offline",
			"HF_HUB_OFFLINE":       "1", // what is baked or mounted is used without asking
			"TRANSFORMERS_OFFLINE": "1",
			"HF_DATASETS_OFFLINE":  "1",
		})
	} else if r.config.Proxy != "" {
		maps.Copy(env, proxyDefaults(r.config.Proxy, user))
	}

	return env
}

// trialSeed derives a trial's seed from its sweep's: not negative, below 2^31
// as NumPy wants it, and the same for every attempt.
func trialSeed(sweepSeed int64, number int) int64 {
	return seedOf(fmt.Sprintf("%d/%d", sweepSeed, number))
}

func seedOf(text string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash takes everything

	return int64(h.Sum64() & math.MaxInt32)
}
