package spec_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

func decode(t *testing.T, doc string) berth.Spec {
	t.Helper()

	s, err := spec.Decode([]byte(doc), "")
	require.NoError(t, err, doc)

	written, ok := plain(t, doc)
	require.True(t, ok)
	require.NoError(t, schema(t).Validate(written), doc)

	return s
}

func TestExample(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("testdata/example.yaml")
	require.NoError(t, err)

	s := decode(t, string(data))
	require.Equal(t, "digits-transfer", s.Name)
	require.Equal(t, []string{
		"python3", "train.py", "--lr={{lr}}", "--batch={{batch}}", "--width={{width}}",
		"--optimizer={{optimizer}}", "--momentum={{momentum}}",
	}, s.Command)
	require.Len(t, s.Parameters, 7)
	require.InDelta(t, 1e-4, *s.Parameters[0].Min, 0)
	require.Equal(t, berth.FloatValue(0.001), *s.Parameters[0].Default)
	require.Equal(t, berth.ParameterDerived, s.Parameters[6].Type)
	require.JSONEq(t, `{"batch":32,"lr":0.001,"optimizer":"adam","width":64}`, s.Enqueue[0].Key())
	require.Equal(t, berth.Duration(2*time.Hour), s.Limits.MaxDuration)
	require.InDelta(t, 0.995, *s.Objective.Target, 0)
	require.Equal(t, berth.Size(64<<20), s.Resources.ShmSize)
	require.Empty(t, spec.Warnings(s))
}

func TestDefaults(t *testing.T) {
	t.Parallel()

	s := decode(t, base)
	low, high := 0.001, 0.1

	require.Equal(t, berth.Spec{
		Version: 1, Name: "digits", Image: "berth-examples/digits:1",
		Command:    []string{"python3", "train.py", "--lr={{lr}}"},
		Parameters: []berth.Parameter{{Name: "lr", Type: berth.ParameterFloat, Min: &low, Max: &high, Log: true}},
		Search:     berth.SearchSpec{Algorithm: berth.SearchRandom},
		Limits:     berth.Limits{MaxTrials: 5, MaxTrialDuration: berth.Duration(24 * time.Hour)},
		Resources:  berth.Resources{Device: berth.DeviceAuto, GPUSharing: "auto"},
		Probe:      berth.ProbeSpec{Mode: berth.ProbeAuto, MaxDuration: berth.Duration(2 * time.Minute)},
		Metrics:    berth.MetricsSpec{Source: berth.MetricsAuto},
		Retry:      berth.RetrySpec{MaxAttempts: 3},
	}, s)
}

func TestTypesAreInferred(t *testing.T) {
	t.Parallel()

	for entry, want := range map[string]berth.ParameterType{
		"{name: a, min: 1, max: 5}":              berth.ParameterInt,
		"{name: a, min: 1, max: 5, log: true}":   berth.ParameterInt,
		"{name: a, min: 1, max: 5, step: 0.5}":   berth.ParameterFloat,
		"{name: a, min: 1, max: 5.0}":            berth.ParameterFloat,
		"{name: a, min: 1e-4, max: 1}":           berth.ParameterFloat,
		"{name: a, values: [1, 2]}":              berth.ParameterCategorical,
		"{name: a, value: 3}":                    berth.ParameterFixed,
		"{name: a, expr: '1 + 1'}":               berth.ParameterDerived,
		"{name: a, type: float, min: 1, max: 5}": berth.ParameterFloat,
	} {
		require.Equal(t, want, decode(t, parameters(entry)).Parameters[0].Type, entry)
	}
}

func TestValuesTakeTheTypeOfTheirParameter(t *testing.T) {
	t.Parallel()

	s := decode(t, with(
		"parameters: [{name: lr, min: 0.0, max: 2, default: 1}, {name: n, min: 1, max: 9, default: 2.0}, "+
			"{name: c, values: [1.0, 2]}, {name: x, value: 1, when: {n: [3.0], c: 1}}]",
		"enqueue: [{lr: 1, n: 4.0, c: 1}]", "command: [train, /trial/in/params.json]"))

	require.Equal(t, berth.FloatValue(1), *s.Parameters[0].Default)
	require.Equal(t, berth.IntValue(2), *s.Parameters[1].Default)
	require.Equal(t, berth.Values{berth.IntValue(3)}, s.Parameters[3].When["n"])
	require.Equal(t, berth.Values{berth.FloatValue(1)}, s.Parameters[3].When["c"])
	require.Equal(t, berth.Assignment{"lr": berth.FloatValue(1), "n": berth.IntValue(4), "c": berth.FloatValue(1)}, s.Enqueue[0])
}

func TestEnqueueAloneDeclaresItsParameters(t *testing.T) {
	t.Parallel()

	s := decode(t, "name: a\nimage: b\ncommand: [train, '--lr={{lr}}', -n, '{{n}}', '{{seed}}']\nenqueue: [{lr: 0.1, n: 1, seed: 1}, {lr: 1, n: 1, seed: 2}, {lr: 1, n: 2, seed: 3}]\n")
	require.Equal(t, berth.SearchList, s.Search.Algorithm)
	require.Equal(t, []berth.Parameter{
		{Name: "lr", Type: berth.ParameterCategorical, Values: berth.Values{berth.FloatValue(0.1), berth.IntValue(1)}, Memory: new(false)},
		{Name: "n", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(1), berth.IntValue(2)}},
		{Name: "seed", Type: berth.ParameterCategorical, Values: berth.Values{berth.IntValue(1), berth.IntValue(2), berth.IntValue(3)}, Memory: new(false)},
	}, s.Parameters)
}

func TestSizesAndDurations(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]berth.Size{
		"1200MiB": 1200 << 20, "2GB": 2e9, "1.5GiB": 3 << 29, "16777216": 16 << 20, "'33554432'": 32 << 20,
		"64 MiB": 64 << 20, "auto": 0, "null": 0, "20000KB": 2e7, "1TiB": 1 << 40, "16777216B": 16 << 20,
	} {
		s := decode(t, with("resources: {memory: "+text+", shm_size: 1MiB}"))
		require.Equal(t, want, s.Resources.Memory, text)
	}

	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour,
		"1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "1500ms": 1500 * time.Millisecond,
	} {
		s := decode(t, with("limits: {max_trials: 1, max_trial_duration: "+text+"}"))
		require.Equal(t, berth.Duration(want), s.Limits.MaxTrialDuration, text)
	}

	require.Equal(t, berth.CPUs(1500), decode(t, with("resources: {cpus: 1.5}")).Resources.CPUs)
}

func TestAccepted(t *testing.T) {
	t.Parallel()

	for _, section := range []string{
		"image: registry.example.com:5000/team/a-b_c/d.e:Tag-1@sha256:" + strings.Repeat("0a", 32),
		"image: localhost/a",
		"image: tensorflow/tensorflow:2.19.0-gpu",
		`command: [sh, "-c", "echo ';rm -rf /' {{lr}}"]`, // case 33: nothing interprets it
		`command: [train, '{"a": {"b": 1}}', "{}", "x={{ lr }}"]`,
		"environment_variables: {TF_FORCE_GPU_ALLOW_GROWTH: 'true', OMP_NUM_THREADS: '2'}",
		"environment_variables: {A: '" + strings.Repeat("x", 32<<10) + "'}",
		"name: Ümläut sweep (v2), lr=1",
		"resources: {device: auto, gpu_memory: auto, gpu_sharing: auto, gpu_memory_spill: false}",
		"resources: {device: cpu}",
		"resources: {device: gpu, gpu_memory: 200GiB, gpu_memory_spill: true}",
		"limits:\n  max_trials: 3\n  max_parallel: auto",
		"metrics: {source: stdout, pattern: '(?P<name>\\w+)=(?P<value>\\S+)'}",
		"probe: {mode: off}\nresources: {memory: 1GiB}",
		"secrets: []\ndatasets: []",
		"labels:",
		"early_stop:",
		"objective: [{metric: acc}]\nsearch: {algorithm: gp}",
		"objective: [{metric: acc, strategy: best}, {metric: latency_ms, goal: minimize}]\nsearch: {algorithm: tpe}",
		"objective: {metric: acc}\nconstraints: [{metric: latency_ms, max: 20}, {metric: recall, min: 0.5, max: 1}]",
		"objective: {metric: acc}\nearly_stop: {rule: asha, min: 1, max: 27, eta: 3}",
		"objective: {metric: acc}\nearly_stop: {rule: median, min: 0, max: 10, startup: 3, interval: 2}",
		"objective: {metric: acc}\nearly_stop: {rule: patience, patience: 5, min_delta: 0.001}",
		"objective: {metric: acc}\nearly_stop: {rule: threshold, below: 0.1, above: 1}",
		"network: true",
		"shim: false",
	} {
		decode(t, with(section))
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()

	yaml := []byte(base)
	jsonText, err := json.Marshal(decode(t, base))
	require.NoError(t, err)

	for _, contentType := range []string{"", "application/json", "application/json; charset=utf-8"} {
		_, err := spec.Decode(jsonText, contentType)
		require.NoError(t, err)
	}

	for _, contentType := range []string{"", "application/yaml", "application/x-yaml", "text/yaml; charset=UTF-8"} {
		_, err := spec.Decode(yaml, contentType)
		require.NoError(t, err)
	}

	_, err = spec.Decode(yaml, "application/json")
	require.ErrorContains(t, err, "E_JSON")

	_, err = spec.Decode([]byte(" {name: flow, image: a, command: [b]}"), "") // YAML all the same
	require.NoError(t, err)
}

func TestWarnings(t *testing.T) {
	t.Parallel()

	codes := func(doc string) []string {
		var out []string
		for _, w := range spec.Warnings(decode(t, doc)) {
			out = append(out, w.Code+" "+w.Pointer)
		}

		return out
	}

	require.Equal(t, []string{"W_FIELD_UNUSED /parameters/0/count"}, codes(with(
		"parameters: [{name: lr, min: 0.1, max: 1, count: 3}]", `command: [train, "--lr={{lr}}"]`)))
	require.Equal(t, []string{"W_FIELD_UNUSED /parameters/0/probabilities"}, codes(with("search: {algorithm: grid}",
		"parameters: [{name: o, values: [a, b], probabilities: [0.5, 0.5], memory: true}]", `command: [train, "{{o}}"]`)))

	require.Empty(t, codes(base))
	require.Equal(t, []string{"W_MEMORY_MARKS /parameters"}, codes(parameters("{name: n, min: 1, max: 5}")))
	require.Empty(t, codes(parameters("{name: n, min: 1, max: 5, memory: false}")))
	require.Equal(t, []string{"W_NO_SEARCH /parameters"}, codes(with("parameters: [{name: n, value: 1}]", "command: [train]")))
}

// A searched parameter reaches the program by a placeholder, by another parameter that
// does, or by the file or the variable that holds its value.
func TestReached(t *testing.T) {
	t.Parallel()

	const two = "parameters: [{name: lr, min: 0.0, max: 1}, {name: n, min: 1, max: 5}, {name: d, expr: n * 2}, {name: f, value: 3}]"

	for _, passed := range []string{
		`command: [train, "--lr={{lr}}", "{{n}}"]`,
		`command: [train, "--lr={{lr}}", "{{d}}"]`,
		"command: [train, /trial/in/params.json]",
		"environment_variables: {N: '{{n}}'}",
		`command: [sh, -c, "train $TRIAL_PARAMS_FILE"]`,
		`command: [sh, -c, "train $TRIAL_PARAM_LR $TRIAL_PARAM_N"]`,
	} {
		_, err := spec.Decode([]byte(with(two, passed)), "application/yaml")
		require.NoError(t, err, passed)
	}

	decode(t, with("parameters: [{name: opt, values: [sgd, adam]}, {name: m, min: 0.0, max: 1, when: {opt: sgd}}]", `command: [train, "--m={{m}}"]`))
	decode(t, with("parameters: [{name: n, values: [1]}]", "command: [train]")) // of one value, which misleads nobody

	for passed, lost := range map[string]string{
		"command: [train]": "/parameters/0,/parameters/1",
		`command: [sh, -c, "train $TRIAL_PARAM_LR_DECAY $TRIAL_PARAM_N"]`: "/parameters/0",
		`command: [train, "--lr={{lr}}", "{{f}}"]`:                        "/parameters/1",
	} {
		_, err := spec.Decode([]byte(with(two, passed)), "application/yaml")
		refused, ok := errors.AsType[*berth.SpecError](err)
		require.True(t, ok, passed)

		var at []string
		for _, p := range refused.Problems {
			require.Equal(t, "E_PARAM_UNUSED", p.Code)
			at = append(at, p.Pointer)
		}

		require.Equal(t, lost, strings.Join(at, ","), passed)
	}
}

// problemsOf are those of a capacity, such as "E_UNSATISFIABLE /resources/memory" and the message.
func problemsOf(s berth.Spec, has spec.Capacity) (texts []string) {
	for _, p := range spec.CheckCapacity(s, has) {
		texts = append(texts, p.Code+" "+p.Pointer+" "+p.Message)
	}

	return texts
}

func TestCapacity(t *testing.T) {
	t.Parallel()

	s := decode(t, with("resources: {memory: 64GiB, shm_size: 48GiB, cpus: 16}"))

	require.Equal(t, []string{
		"E_UNSATISFIABLE /resources/memory every host lacks memory: 65,536 MiB are more than 20,490 MiB",
		"E_UNSATISFIABLE /resources/shm_size every host lacks memory: 49,152 MiB are more than 20,490 MiB",
		"E_UNSATISFIABLE /resources/cpus every host lacks cores: 16 are more than 8",
	}, problemsOf(s, spec.Capacity{Hosts: []spec.HostCapacity{{Name: "a", MemoryBytes: 21485026713, CPUMilli: 8000}}}))
	require.Empty(t, problemsOf(s, spec.Capacity{Hosts: []spec.HostCapacity{{Name: "a", MemoryBytes: 64 << 30, CPUMilli: 16000}}}))
}

// A sweep is accepted when one host has all that a trial asks for.
func TestCapacity_OfOneHost(t *testing.T) {
	t.Parallel()

	s := decode(t, with("resources: {memory: 32GiB, cpus: 4}", "datasets: [{name: flowers, target: /data/f}, {name: birds, target: /data/b}]"))
	small := spec.HostCapacity{Name: "small", MemoryBytes: 8 << 30, CPUMilli: 8000, Datasets: []string{"birds", "flowers"}}
	large := spec.HostCapacity{Name: "large", MemoryBytes: 64 << 30, CPUMilli: 8000, Datasets: []string{"birds"}}
	bare := spec.HostCapacity{Name: "bare", MemoryBytes: 64 << 30, CPUMilli: 2000}
	whole := spec.HostCapacity{Name: "whole", MemoryBytes: 64 << 30, CPUMilli: 8000, Datasets: []string{"birds", "flowers"}}

	problems := func(hosts ...spec.HostCapacity) []string { return problemsOf(s, spec.Capacity{Hosts: hosts}) }

	require.Equal(t, []string{
		"E_UNSATISFIABLE /resources/memory host small, the nearest as no host has all, lacks memory: 32,768 MiB are more than 8,192 MiB",
	}, problems(bare, small, large))
	require.Equal(t, []string{
		`E_DATASET /datasets/0/name host large, the nearest as no host has all, lacks the data set "flowers" (there are: birds); start a worker with --dataset flowers=PATH`,
	}, problems(bare, large, small))
	require.Equal(t, []string{
		`E_DATASET /datasets/0/name every host lacks the data set "flowers" (there are: birds); start a worker with --dataset flowers=PATH`,
	}, problems(bare, large))
	require.Empty(t, problems(bare, small, large, whole))

	// A stage may be on another host than the trial.
	s.Stages = []berth.Stage{{Name: "base", Resources: &berth.Resources{Memory: 64 << 30, CPUs: 64000}}}
	require.Equal(t, []string{"E_UNSATISFIABLE /stages/0/resources/cpus every host lacks cores: 64 are more than 8"}, problems(bare, small, large, whole))

	// Its host needs the sweep's data sets, in whatever order the hosts come.
	s.Resources.Memory, s.Stages[0].Resources = 4<<30, &berth.Resources{Memory: 32 << 30, CPUs: 4000}
	lacks := []string{"E_UNSATISFIABLE /stages/0/resources/memory host small, the nearest as no host has all, lacks memory: 32,768 MiB are more than 8,192 MiB"}
	require.Equal(t, lacks, problems(small, large))
	require.Equal(t, lacks, problems(large, small))
	require.Empty(t, problems(large, small, whole))
}

// A sweep with stages reads one version of each data set, that of all hosts.
func TestPinDatasets(t *testing.T) {
	t.Parallel()

	const one, two = "0123456789abcdef", "00000000000000ff"

	sweep := decode(t, with("stages: [{name: a, command: [x]}]", "datasets: [{name: flowers, target: /data/f}]"))
	host := func(name string, datasets ...string) spec.HostCapacity {
		return spec.HostCapacity{Name: name, MemoryBytes: 64 << 30, CPUMilli: 8000, Datasets: datasets}
	}
	pin := func(hosts ...spec.HostCapacity) (version string, problems []string) {
		pinned, found := spec.PinDatasets(sweep, hosts)
		for _, p := range found {
			problems = append(problems, p.Code+" "+p.Pointer+" "+p.Message)
		}

		return pinned.Datasets[0].Version, problems
	}

	version, problems := pin(host("a", "flowers@"+one), host("b", "birds@"+two), host("c", "flowers"), host("d", "flowers@"+one))
	require.Equal(t, one, version)
	require.Empty(t, problems)

	_, problems = pin(host("a", "flowers"))
	require.Equal(t, []string{`E_DATASET /datasets/0/name no worker has read yet which version of the data set "flowers" it has, on which stages depend; submit again in a moment (a data set of more than 5,000,000 files has none)`}, problems)

	_, problems = pin(host("a", "flowers@"+one), host("b", "flowers@"+two))
	require.Equal(t, []string{`E_DATASET /datasets/0/name hosts have the data set "flowers" in 2 versions: ` + one + " (a), " + two +
		" (b); stages read one: copy it with its times, as rsync -a does, or write version: " + one}, problems)

	sweep.Datasets[0].Version = two
	version, problems = pin(host("a", "flowers@"+one))
	require.Equal(t, two, version)
	require.Empty(t, problems)
	require.Equal(t, []string{
		`E_DATASET /datasets/0/version every host lacks version ` + two + ` of the data set "flowers" (there is: ` + one + `); leave version out to take what the hosts have`,
	}, problemsOf(sweep, spec.Capacity{Hosts: []spec.HostCapacity{host("a", "flowers@"+one)}}))

	sweep.Stages, sweep.Datasets[0].Version = nil, ""
	version, problems = pin(host("a", "flowers@"+one))
	require.Empty(t, version, "a trial without stages says which one it had")
	require.Empty(t, problems)
}

// An administrator's rule holds for the images of stages, too.
func TestPolicy_Stages(t *testing.T) {
	t.Parallel()

	s := decode(t, with("stages: [{name: a, command: [x]}, {name: b, command: [x], image: evil/b:1}]"))
	problems := spec.CheckPolicy(s, spec.Policy{AllowImages: []string{s.Image}})
	require.Len(t, problems, 1)
	require.Equal(t, "E_IMAGE_DENIED /stages/1/image", problems[0].Code+" "+problems[0].Pointer)
}

func TestPolicy(t *testing.T) {
	t.Parallel()

	s := decode(t, base)
	require.Empty(t, spec.CheckPolicy(s, spec.Policy{}))
	require.Empty(t, spec.CheckPolicy(s, spec.Policy{DenyNetwork: true}))

	s.Network = true
	problems := spec.CheckPolicy(s, spec.Policy{DenyNetwork: true})
	require.Equal(t, "E_NETWORK_DENIED /network", problems[0].Code+" "+problems[0].Pointer)
}

// The names are read as Docker reads them, so no other spelling gets past a pattern.
func TestPolicy_AllowImages(t *testing.T) {
	t.Parallel()

	named, err := reference.ParseNormalizedNamed("python")
	require.NoError(t, err)

	hub := reference.Domain(named) // Docker's own registry

	for pattern, images := range map[string]struct{ allowed, refused []string }{
		"registry.example/team/*": {
			allowed: []string{"registry.example/team/a:1", "registry.example/team/a@sha256:0", "registry.example/team/a"},
			refused: []string{
				"registry.example/team/a/b:1", "registry.example/other/a", "registry.example.evil/team/a", "registry.example:5000/team/a",
				"team/a", "a", "evil/registry.example/team/a",
			},
		},
		"registry.example:5000/team/**": {
			allowed: []string{"registry.example:5000/team/a", "registry.example:5000/team/a/b:1"},
			refused: []string{"registry.example:5000/team", "registry.example/team/a", "registry.example:5000/teams/a"},
		},
		"python": {
			allowed: []string{"python", "python:3.11", hub + "/python", hub + "/library/python:3", "index." + hub + "/library/python"},
			refused: []string{"someone/python", "python2", "registry.example/library/python"},
		},
		"someone/*": {allowed: []string{"someone/python", hub + "/someone/python"}, refused: []string{"python", "someone.example/python"}},
		hub + "/**": {allowed: []string{"python", "a/b", hub + "/a/b"}, refused: []string{"registry.example/a", "localhost/a"}},
		"*":         {allowed: []string{"python"}, refused: []string{"sha256:" + strings.Repeat("0", 64), "0123456789ab", "a/b"}},
	} {
		policy := spec.Policy{AllowImages: []string{"nothing.example/here", pattern}}
		require.NoError(t, policy.Check())

		for _, image := range images.allowed {
			require.Empty(t, spec.CheckPolicy(berth.Spec{Image: image}, policy), "%s of %s", image, pattern)
		}

		for _, image := range images.refused {
			problems := spec.CheckPolicy(berth.Spec{Image: image}, policy)
			require.Len(t, problems, 1, "%s of %s", image, pattern)
			require.Equal(t, "E_IMAGE_DENIED", problems[0].Code)
			require.Equal(t, "/image", problems[0].Pointer)
			require.Contains(t, problems[0].Message, "nothing.example/here, "+pattern)
		}
	}

	for _, pattern := range []string{"", "[", "a b", "a@sha256:0"} {
		require.ErrorContains(t, spec.Policy{AllowImages: []string{pattern}}.Check(), "is no pattern of repositories")
	}
}

// A secret must be stored, and some machine must open it.
func TestCheckSecrets(t *testing.T) {
	t.Parallel()

	s := berth.Spec{Secrets: []berth.SecretMount{{Name: "hub", File: "/a"}, {Name: "db", File: "/b"}}}

	require.Empty(t, spec.CheckSecrets(berth.Spec{}, nil, false))
	require.Empty(t, spec.CheckSecrets(s, []string{"db", "hub"}, false), "another server may have stored them")
	require.Equal(t, []berth.Problem{{
		Code: "E_SECRET", Pointer: "/secrets/1/name", Message: "there is no secret \"db\" (there are: hub); an administrator stores it with `berth secret set db`",
	}}, spec.CheckSecrets(s, []string{"hub"}, true))

	none := spec.CheckSecrets(s, nil, false)
	require.Len(t, none, 2)
	require.Equal(t, "there is no secret \"hub\" (none is stored); this server has no key to store one with: start it, and the workers, "+
		"with --secrets-key FILE, which `berth secret key FILE` makes", none[0].Message)

	check := func(hosts ...spec.HostCapacity) []string {
		return problemsOf(s, spec.Capacity{Hosts: hosts, SecretKeys: map[string]string{"hub": "age1new", "db": "age1old"}})
	}

	const start = "; start a worker with --secrets-key and a file that holds the private key of "

	both := spec.HostCapacity{Name: "both", SecretKeys: []string{"age1new", "age1old"}}
	fresh, former := spec.HostCapacity{Name: "fresh", SecretKeys: []string{"age1new"}}, spec.HostCapacity{Name: "former", SecretKeys: []string{"age1old"}}

	require.Empty(t, check(fresh, both))
	require.Equal(t, []string{`E_SECRET /secrets/1/name every host lacks the key of secret "db"` + start + "age1old"}, check(fresh))
	require.Equal(t, []string{`E_SECRET /secrets/1/name host fresh, the nearest as no host has all, lacks the key of secret "db"` + start + "age1old"}, check(fresh, former))
}
