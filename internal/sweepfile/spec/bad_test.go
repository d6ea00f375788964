package spec_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

var update = flag.Bool("update", false, "rewrite testdata/messages.golden")

const base = `name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}"]
parameters: [{name: lr, min: 0.001, max: 0.1, log: true}]
limits: {max_trials: 5}
`

// with replaces or adds top-level sections of the base document.
func with(sections ...string) string {
	lines := strings.SplitAfter(base, "\n")

	for _, section := range sections {
		key, _, _ := strings.Cut(section, ":")
		for i, line := range lines {
			if strings.HasPrefix(line, key+":") {
				lines[i] = ""
			}
		}

		lines = append(lines, section+"\n")
	}

	return strings.Join(lines, "")
}

func parameters(entries ...string) string {
	return with("parameters: ["+strings.Join(entries, ", ")+"]", "command: [train, /trial/in/params.json]")
}

// bad are specs that are refused; want lists "code pointer" of each problem.
// The numbers come from the design's list of cases.
var bad = []struct {
	name, contentType, doc string
	status                 int // 400 = wire
	want                   []string
}{
	{"01 empty body", "", " \n", 400, []string{"E_BODY_EMPTY "}},
	{"02 bad JSON", "application/json", `{"name": }`, 400, []string{"E_JSON "}},
	{"02 bad YAML", "", "name: [", 400, []string{"E_YAML "}},
	{"03 trailing data", "application/json", `{"name": "a"} {}`, 400, []string{"E_JSON "}},
	{"03 two documents", "", base + "---\nname: b\n", 400, []string{"E_YAML "}},
	{"04 duplicate key", "", base + "name: again\n", 400, []string{"E_DUP_KEY /name"}},
	{"04 duplicate key in JSON", "application/json", `{"name":"a","image":"i","command":["x"],"labels":{"a":"1","a":"2"}}`, 400, []string{"E_DUP_KEY /labels/a"}},
	{"05 unknown field", "", with("parmeters: []"), 400, []string{"E_UNKNOWN_FIELD /parmeters"}},
	{"05 unknown field, nothing near", "", with("webhooks: []"), 400, []string{"E_UNKNOWN_FIELD /webhooks"}},
	{"05 unknown nested field", "", with("retry: {max_atempts: 2}"), 400, []string{"E_UNKNOWN_FIELD /retry/max_atempts"}},
	{"06 too large", "", base + "#" + strings.Repeat("x", 1<<20), 400, []string{"E_BODY_TOO_LARGE "}},
	{"07 content type", "text/html; charset=utf-8", base, 400, []string{"E_CONTENT_TYPE "}},
	{"08 too deep", "application/json", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), 400, []string{"E_DEPTH "}},
	{"09 not UTF-8", "", "name: \xff\n", 400, []string{"E_UTF8 "}},
	{"10 NUL", "", with(`name: "a\0b"`), 422, []string{"E_CHAR /name"}},
	{"12 alias bomb", "", "a: &a [x]\nb: [*a, *a]\n", 400, []string{"E_DEPTH "}},
	{"13 array", "application/json", `[]`, 400, []string{"E_TYPE "}},
	{"14 number as text", "", with("name: 5"), 400, []string{"E_TYPE /name"}},
	{"14 text as number", "", with(`limits: {max_trials: "5"}`), 400, []string{"E_TYPE /limits/max_trials"}},
	{"14 parameters as object", "", with("parameters: {lr: {min: 0, max: 1}}"), 400, []string{"E_TYPE /parameters"}},
	{"15 beyond 2^53", "", with("search: {seed: 9007199254740993}"), 422, []string{"E_RANGE /search/seed"}},
	{"16 empty name", "", with("name: ''"), 422, []string{"E_NAME /name"}},
	{"16 no name", "", strings.Replace(base, "name: digits\n", "", 1), 422, []string{"E_NAME /name"}},
	{"17 long name", "", with("name: " + strings.Repeat("x", 201)), 422, []string{"E_NAME /name"}},
	{"18 path as name", "", with("name: ../x"), 422, []string{"E_NAME /name"}},
	{"19 bidi", "", with("name: a\u202eb"), 422, []string{"E_CHAR /name"}},
	{"version", "", with("version: 2"), 422, []string{"E_VERSION /version"}},
	{"label key", "", with("labels: {'bad key': x}"), 422, []string{"E_LABEL /labels/bad key"}},
	{"21 no image", "", strings.Replace(base, "image: berth-examples/digits:1\n", "", 1), 422, []string{"E_IMAGE /image"}},
	{"22 upper case", "", with("image: Digits:1"), 422, []string{"E_IMAGE /image"}},
	{"22 no reference", "", with("image: 'a b'"), 422, []string{"E_IMAGE /image"}},
	{"22 bad tag", "", with("image: 'a:b:c'"), 422, []string{"E_IMAGE /image"}},
	{"25 short digest", "", with("image: a@sha256:abc"), 422, []string{"E_IMAGE /image"}},
	{"28 no command", "", with("command: []"), 422, []string{"E_CMD /command"}},
	{"28 no program", "", with("command: ['']"), 422, []string{"E_CMD /command/0"}},
	{"29 command as text", "", with("command: python3 train.py"), 400, []string{"E_TYPE /command"}},
	{"29 number in command", "", with("command: [train, 5]"), 400, []string{"E_TYPE /command/1"}},
	{"30 half a placeholder", "", with(`command: [train, "--lr={{lr}"]`), 422, []string{"E_TEMPLATE /command/1"}},
	{"31 unknown placeholder", "", with(`command: [train, "--lr={{l}}"]`), 422, []string{"E_TEMPLATE_PARAM /command/1"}},
	{"34 huge command", "", with("command: [train, " + strings.Repeat("x", 140_000) + "]"), 422, []string{"E_CMD_SIZE /command"}},
	{"35 choice with a dash", "", with(`command: [train, "{{o}}"]`, "parameters: [{name: o, values: [a, -b]}]"), 422, []string{"E_ARG_DASH /command/1"}},
	{"35 negative number", "", with(`command: [train, "{{x}}"]`, "parameters: [{name: x, min: -1, max: 1.5}]"), 422, []string{"E_ARG_DASH /command/1"}},
	{"35 derived, some below 0", "", with(`command: [train, "--n={{n}}", "{{z}}"]`, "parameters: [{name: n, min: 1, max: 9}, {name: z, expr: 'n - 5'}]"), 422, []string{"E_ARG_DASH /command/2"}},
	{"35 derived, seldom below 0", "", with(`command: [train, "{{z}}"]`, "parameters: [{name: x, min: 0.0, max: 1000}, {name: z, expr: 'x - 0.001'}]"), 422, []string{"E_ARG_DASH /command/1"}},
	{"35 after a value that may be empty", "", with(`command: [train, "{{o}}{{x}}"]`, "parameters: [{name: o, values: ['', a]}, {name: x, min: -1, max: 1.5}]"), 422, []string{"E_ARG_DASH /command/1"}},
	{"35 enqueued", "", with(`command: [train, "{{z}}"]`, "parameters: [{name: x, min: 0.0, max: 1}, {name: z, expr: 'abs(x - 1) / (x - 0.5)'}]", "forbid: ['x < 0.5']", "enqueue: [{x: 0.5}, {x: 0.75}]"), 422, []string{"E_ENQUEUE /enqueue/0"}},
	{"program that may be empty", "", with(`command: ["{{o}}"]`, "parameters: [{name: o, values: ['', a]}]"), 422, []string{"E_CMD /command/0"}},
	{"program that may be absent", "", with(`command: ["bin/{{m}}", x]`, "parameters: [{name: m, values: [a], when: {o: a}}, {name: o, values: [a, b]}]"), 422, []string{"E_COND /command/0"}},
	{"34 huge with its values", "", with(`command: [train, "`+strings.Repeat("{{o}}", 10)+`"]`, "parameters: [{name: o, values: [a, "+strings.Repeat("x", 20_000)+"]}]"), 422, []string{"E_CMD_SIZE /command"}},
	{"value longer than a variable", "", parameters("{name: o, values: [a, "+strings.Repeat("x", 40_000)+"]}", "{name: f, value: "+strings.Repeat("x", 40_000)+"}"), 422, []string{"E_CHOICE /parameters/0/values/1", "E_PARAM /parameters/1/value"}},
	{"reaches no program", "", with("command: [train]"), 422, []string{"E_PARAM_UNUSED /parameters/0"}},
	{"a placeholder of init", "", with("objective: {metric: REPLACE-ME, goal: minimize}"), 422, []string{"E_FILL_IN /objective/metric"}},
	{"nothing may be tried", "", with(`command: [train, "{{n}}"]`, "parameters: [{name: n, min: 1, max: 9}]", "forbid: ['n > 0']"), 422, []string{"E_SPACE_EMPTY /parameters"}},
	{"nothing can be computed", "", with(`command: [train, "{{n}}"]`, "parameters: [{name: n, min: 1, max: 9}, {name: d, expr: 'n / 0'}]"), 422, []string{"E_SPACE_EMPTY /parameters"}},
	{"conditional as an element", "", with(`command: [train, --m, "{{m}}"]`, "parameters: [{name: m, min: 0.5, max: 1, when: {o: a}}, {name: o, values: [a, b]}]"), 422, []string{"E_COND /command/2"}},
	{"workdir", "", with("workdir: app"), 422, []string{"E_WORKDIR /workdir"}},
	{"36 variable name", "", with("environment_variables: {1BAD: x, lower: x}"), 422, []string{"E_ENV_NAME /environment_variables/1BAD", "E_ENV_NAME /environment_variables/lower"}},
	{"37 LD_PRELOAD", "", with("environment_variables: {LD_PRELOAD: /x.so}"), 422, []string{"E_ENV_DENIED /environment_variables/LD_PRELOAD"}},
	{"38 CUDA_VISIBLE_DEVICES", "", with("environment_variables: {CUDA_VISIBLE_DEVICES: '0'}"), 422, []string{"E_ENV_DENIED /environment_variables/CUDA_VISIBLE_DEVICES"}},
	{"39 NVIDIA_VISIBLE_DEVICES", "", with("environment_variables: {NVIDIA_VISIBLE_DEVICES: all}"), 422, []string{"E_ENV_DENIED /environment_variables/NVIDIA_VISIBLE_DEVICES"}},
	{"TRIAL_ID", "", with("environment_variables: {TRIAL_ID: x}"), 422, []string{"E_ENV_DENIED /environment_variables/TRIAL_ID"}},
	{"no memory growth", "", with("environment_variables: {TF_FORCE_GPU_ALLOW_GROWTH: 'false'}"), 422, []string{"E_ENV_DENIED /environment_variables/TF_FORCE_GPU_ALLOW_GROWTH"}},
	{"preallocation", "", with("environment_variables: {XLA_PYTHON_CLIENT_PREALLOCATE: 'true'}"), 422, []string{"E_ENV_DENIED /environment_variables/XLA_PYTHON_CLIENT_PREALLOCATE"}},
	{"variable is a number", "", with("environment_variables: {TF_X: 1}"), 400, []string{"E_TYPE /environment_variables/TF_X"}},
	{"tab", "", "name: a\nimage: a\ncommand:\n\t- train\n", 400, []string{"E_YAML "}},
	{"placeholder in a list", "", "name: a\nimage: a\ncommand: [train, --lr={{lr}}]\n", 400, []string{"E_YAML "}},
	{"placeholder alone in a list", "", "name: a\nimage: a\ncommand:\n  - train\n  - {{lr}}\n", 400, []string{"E_YAML "}},
	{"sweep of W&B", "", "program: train.py\nmethod: bayes\nmetric: {name: loss, goal: minimize}\nparameters: {lr: {min: 0, max: 1}}\n", 400, []string{"E_UNKNOWN_FIELD "}},
	{"sweep of Katib", "", "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: a}\nspec: {}\n", 400, []string{"E_UNKNOWN_FIELD "}},
	{"fields of others", "", with("resources: {gpu: 1}", "parameters: [{name: lr, min: 0.1, max: 1, scale: log}]"), 400, []string{"E_UNKNOWN_FIELD /resources/gpu", "E_UNKNOWN_FIELD /parameters/0/scale"}},
	{"variable of no parameter", "", with("environment_variables: {A: '{{lrr}}', B: '{{lr', C: '{{lr}}'}"), 422, []string{"E_TEMPLATE_PARAM /environment_variables/A", "E_TEMPLATE /environment_variables/B"}},
	{"40 secret name", "", with("secrets: [{name: ../x, file: /run/secrets/x}]"), 422, []string{"E_SECRET /secrets/0/name"}},
	{"41 host path", "", with("datasets: [{name: /home/me, target: /data}]"), 422, []string{"E_MOUNT_DENIED /datasets/0/name"}},
	{"41 host path as source", "", with("datasets: [{name: a, source: /home/me, target: /data}]"), 400, []string{"E_UNKNOWN_FIELD /datasets/0/source"}},
	{"42 docker.sock", "", with("datasets: [{name: d, target: /var/run/docker.sock}]"), 422, []string{"E_MOUNT_DENIED /datasets/0/target"}},
	{"43 dataset path", "", with("datasets: [{name: ../../etc, target: /data}]"), 422, []string{"E_DATASET /datasets/0/name"}},
	{"44 target /proc", "", with("datasets: [{name: d, target: /proc}, {name: e, target: /trial/x}, {name: f, target: a}]"), 422, []string{"E_MOUNT_TARGET /datasets/0/target", "E_MOUNT_TARGET /datasets/1/target", "E_MOUNT_TARGET /datasets/2/target"}},
	{"45 duplicate target", "", with("datasets: [{name: d, target: /data}, {name: e, target: /data}]"), 422, []string{"E_MOUNT_DUP /datasets/1/target"}},
	{"46 grid of nothing", "", with("parameters: []", "command: [train]", "search: {algorithm: grid}"), 422, []string{"E_SPACE_EMPTY /parameters"}},
	{"46 list of nothing", "", with("search: {algorithm: list}"), 422, []string{"E_SPACE_EMPTY /enqueue"}},
	{"47 min above max", "", parameters("{name: lr, min: 2, max: 1}"), 422, []string{"E_RANGE /parameters/0/min"}},
	{"48 one float", "", parameters("{name: lr, type: float, min: 1, max: 1}"), 422, []string{"E_RANGE /parameters/0/min"}},
	{"int with a fraction", "", parameters("{name: n, type: int, min: 0.5, max: 2}"), 422, []string{"E_RANGE /parameters/0/min"}},
	{"49 log of zero", "", parameters("{name: lr, min: 0, max: 0.1, log: true}"), 422, []string{"E_LOG_RANGE /parameters/0/min"}},
	{"50 step 0", "", parameters("{name: n, min: 0, max: 5, step: 0}"), 422, []string{"E_STEP /parameters/0/step"}},
	{"51 step above span", "", parameters("{name: n, min: 0, max: 5, step: 6}"), 422, []string{"E_STEP /parameters/0/step"}},
	{"log and step", "", parameters("{name: n, min: 1, max: 5, step: 2, log: true}"), 422, []string{"E_STEP /parameters/0/step"}},
	{"52 no choice", "", parameters("{name: o, values: []}"), 422, []string{"E_CHOICE /parameters/0/values"}},
	{"53 duplicate choice", "", parameters("{name: o, values: [1, 2, 1.0]}"), 422, []string{"E_CHOICE_DUP /parameters/0/values/2"}},
	{"54 infinite number", "", parameters("{name: x, min: 0, max: 1e999}"), 422, []string{"E_FLOAT /parameters/0/max"}},
	{"54 NaN", "", parameters("{name: x, min: .nan, max: 1}"), 422, []string{"E_FLOAT /parameters/0/min"}},
	{"55 grid without points", "", with("search: {algorithm: grid}"), 422, []string{"E_GRID /parameters/0"}},
	{"56 overflow", "", parameters("{name: a, min: 0, max: 4503599627370496}", "{name: b, min: 0, max: 4503599627370496}") + "search: {algorithm: grid}\n", 422, []string{"E_TOO_MANY /parameters"}},
	{"57 large grid", "", parameters("{name: a, min: 1, max: 1000}", "{name: b, min: 1, max: 101}") + "search: {algorithm: grid}\n", 422, []string{"E_TOO_MANY /parameters"}},
	{"58 name clash", "", parameters("{name: lr, value: 1}", "{name: lr, value: 2}", "{name: LR, value: 3}"), 422, []string{"E_PARAM_DUP /parameters/1/name", "E_PARAM_DUP /parameters/2/name"}},
	{"59 cycle", "", parameters("{name: a, values: [x], when: {b: [x]}}", "{name: b, values: [x], when: {a: [x]}}"), 422, []string{"E_COND_CYCLE /parameters/0/when"}},
	{"59 self", "", parameters("{name: a, values: [x], when: {a: [x]}}"), 422, []string{"E_COND_CYCLE /parameters/0/when/a"}},
	{"60 no parent", "", parameters("{name: a, values: [x], when: {nobody: [x]}}"), 422, []string{"E_COND /parameters/0/when/nobody"}},
	{"60 value the parent never has", "", parameters("{name: a, values: [x], when: {b: [y]}}", "{name: b, values: [x]}"), 422, []string{"E_COND /parameters/0/when/b"}},
	{"60 float parent", "", parameters("{name: a, values: [x], when: {b: [1]}}", "{name: b, min: 0.5, max: 1}"), 422, []string{"E_COND /parameters/0/when/b"}},
	{"61 too many parameters", "", parameters(strings.Repeat("{name: a, value: 1}, ", 201)), 422, []string{"E_TOO_MANY /parameters"}},
	{"bad parameter name", "", parameters("{name: learning-rate, value: 1}", "{value: 1}"), 422, []string{"E_PARAM_NAME /parameters/0/name", "E_PARAM_NAME /parameters/1/name"}},
	{"field that does not fit", "", parameters("{name: a, values: [x], step: 2}", "{name: b, value: 1, max: 2}"), 422, []string{"E_PARAM /parameters/0/step", "E_PARAM /parameters/1/max"}},
	{"half a range", "", parameters("{name: a, type: int, min: 1}", "{name: b}"), 422, []string{"E_PARAM /parameters/0/max", "E_PARAM /parameters/1/type"}},
	{"unknown type", "", parameters("{name: a, type: double, min: 0, max: 1}"), 422, []string{"E_VALUE /parameters/0/type"}},
	{"probabilities", "", parameters("{name: a, values: [x, y], probabilities: [0.5, 0.4]}"), 422, []string{"E_PROBABILITIES /parameters/0/probabilities"}},
	{"default outside", "", parameters("{name: a, min: 1, max: 5, default: 6}"), 422, []string{"E_DEFAULT /parameters/0/default"}},
	{"expression", "", parameters("{name: a, expr: 1 +}", "{name: b, expr: nosuch}"), 422, []string{"E_EXPR /parameters/0/expr", "E_EXPR /parameters/1/expr"}},
	{"expression circle", "", parameters("{name: a, expr: b + 1}", "{name: b, expr: a + 1}"), 422, []string{"E_EXPR /parameters/0/expr", "E_EXPR /parameters/1/expr"}},
	{"forbid", "", with("forbid: ['lr + 1', 'lr > 0.01', '1 > 2']"), 422, []string{"E_EXPR /forbid/0", "E_EXPR /forbid/2"}},
	{"enqueue", "", with("enqueue: [{lr: 5}, {rl: 0.01}, {}]"), 422, []string{"E_ENQUEUE /enqueue/0/lr", "E_ENQUEUE /enqueue/1/rl", "E_ENQUEUE /enqueue/2"}},
	{"enqueue forbidden", "", with("enqueue: [{lr: 0.01}]", "forbid: ['lr < 0.02']"), 422, []string{"E_ENQUEUE /enqueue/0"}},
	{"62 unknown algorithm", "", with("search: {algorithm: magic}"), 422, []string{"E_ALGO /search/algorithm"}},
	{"62 a rule of early stopping as algorithm", "", with("search: {algorithm: asha}"), 422, []string{"E_ALGO /search/algorithm"}},
	{"tpe without an objective", "", with("search: {algorithm: tpe}"), 422, []string{"E_OBJECTIVE /search/algorithm"}},
	{"startup 0", "", with("search: {algorithm: sobol, startup: 0}"), 422, []string{"E_RANGE /search/startup"}},
	{"63 no trials", "", with("limits: {max_trials: 0}"), 422, []string{"E_TRIALS /limits/max_trials"}},
	{"64 negative trials", "", with("limits: {max_trials: -1}"), 422, []string{"E_TRIALS /limits/max_trials"}},
	{"random without end", "", strings.Replace(base, "limits: {max_trials: 5}\n", "", 1), 422, []string{"E_TRIALS /limits/max_trials"}},
	{"65 concurrency 0", "", with("limits: {max_trials: 5, max_parallel: 0}"), 422, []string{"E_CONCURRENCY /limits/max_parallel"}},
	{"objective without metric", "", with("objective: {goal: minimize}"), 422, []string{"E_OBJECTIVE /objective/metric"}},
	{"objective as text", "", with("objective: loss"), 400, []string{"E_TYPE /objective"}},
	{"68 direction", "", with("objective: {metric: a, goal: up}"), 422, []string{"E_DIRECTION /objective/goal"}},
	{"no objective in a list", "", with("objective: []"), 422, []string{"E_OBJECTIVE /objective"}},
	{"five objectives", "", with("objective: [{metric: a}, {metric: b}, {metric: c}, {metric: d}, {metric: e}]"), 422, []string{"E_OBJECTIVE /objective"}},
	{"objective twice", "", with("objective: [{metric: a}, {metric: a}]"), 422, []string{"E_OBJECTIVE /objective/1/metric"}},
	{"objectives with a target", "", with("objective: [{metric: a, target: 1}, {metric: b}]"), 422, []string{"E_OBJECTIVE /objective/0/target"}},
	{"objective that is text", "", with("objective: [a]"), 400, []string{"E_TYPE /objective/0"}},
	{"objectives and early stopping", "", with("objective: [{metric: a}, {metric: b}]\nearly_stop: {rule: median}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"objectives and earlier sweeps", "", with("objective: [{metric: a}, {metric: b}]\nsearch: {from: [c]}"), 422, []string{"E_FROM /search/from"}},
	{"objectives and gp", "", with("objective: [{metric: a}, {metric: b}]\nsearch: {algorithm: gp}"), 422, []string{"E_OBJECTIVE /search/algorithm"}},
	{"constraints and earlier sweeps", "", with("objective: {metric: a}\nconstraints: [{metric: b, max: 1}]\nsearch: {from: [c]}"), 422, []string{"E_FROM /search/from"}},
	{"constraints and asha", "", with("objective: {metric: a}\nconstraints: [{metric: b, max: 1}]\nearly_stop: {rule: asha, max: 9}"), 422, []string{"E_EARLY_STOP /early_stop/rule"}},
	{"constraints without objective", "", with("constraints: [{metric: a, max: 1}]"), 422, []string{"E_OBJECTIVE /constraints"}},
	{"constraint without metric", "", with("objective: {metric: a}\nconstraints: [{max: 1}]"), 422, []string{"E_CONSTRAINT /constraints/0/metric"}},
	{"constraint without bound", "", with("objective: {metric: a}\nconstraints: [{metric: b}]"), 422, []string{"E_CONSTRAINT /constraints/0"}},
	{"constraint without room", "", with("objective: {metric: a}\nconstraints: [{metric: b, min: 2, max: 1}]"), 422, []string{"E_CONSTRAINT /constraints/0/min"}},
	{"constraint twice", "", with("objective: {metric: a}\nconstraints: [{metric: b, min: 2}, {metric: b, max: 3}]"), 422, []string{"E_CONSTRAINT /constraints/1/metric"}},
	{"69 early stopping in search", "", with("search: {early_stop: {algorithm: asha, eta: 1}}"), 400, []string{"E_UNKNOWN_FIELD /search/early_stop"}},
	{"early stopping without a rule", "", with("objective: {metric: a}\nearly_stop: {max: 9}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"unknown rule", "", with("objective: {metric: a}\nearly_stop: {rule: hyperband}"), 422, []string{"E_VALUE /early_stop/rule"}},
	{"early stopping without objective", "", with("early_stop: {rule: asha, max: 9}"), 422, []string{"E_OBJECTIVE /early_stop"}},
	{"asha without end", "", with("objective: {metric: a}\nearly_stop: {rule: asha}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"asha that ends before it begins", "", with("objective: {metric: a}\nearly_stop: {rule: asha, min: 9, max: 9}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"asha from step 0", "", with("objective: {metric: a}\nearly_stop: {rule: asha, min: 0, max: 9}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"eta of 1", "", with("objective: {metric: a}\nearly_stop: {rule: asha, max: 9, eta: 1}"), 422, []string{"E_RANGE /early_stop/eta"}},
	{"member of another rule", "", with("objective: {metric: a}\nearly_stop: {rule: asha, max: 9, patience: 3}"), 422, []string{"E_EARLY_STOP /early_stop/patience"}},
	{"patience without a number", "", with("objective: {metric: a}\nearly_stop: {rule: patience}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"negative delta", "", with("objective: {metric: a}\nearly_stop: {rule: patience, patience: 3, min_delta: -1}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"threshold without a bound", "", with("objective: {metric: a}\nearly_stop: {rule: threshold}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"threshold without room", "", with("objective: {metric: a}\nearly_stop: {rule: threshold, above: 1, below: 1}"), 422, []string{"E_EARLY_STOP /early_stop"}},
	{"from of a search that does not learn", "", with("search: {algorithm: grid, from: [a]}"), 422, []string{"E_GRID /parameters/0", "E_FROM /search/from"}},
	{"from too many", "", with("objective: {metric: a}\nsearch: {from: [a, b, c, d, e, f, g, h, i]}"), 422, []string{"E_TOO_MANY /search/from"}},
	{"71 seed with a fraction", "", with("search: {seed: 1.5}"), 400, []string{"E_TYPE /search/seed"}},
	{"72 memory 0", "", with("resources: {memory: 0, gpu_memory: 5}"), 422, []string{"E_MEM /resources/memory", "E_MEM /resources/gpu_memory"}},
	{"73 unit", "", with("resources: {memory: 10XB}"), 422, []string{"E_UNIT /resources/memory"}},
	{"75 two GPUs", "", with("resources: {gpus: 2}"), 422, []string{"E_UNSUPPORTED /resources/gpus"}},
	{"75 one GPU", "", with("resources: {gpus: 1, device: gpu, gpu_memory: 2GB, gpu_sharing: mps, gpu_memory_spill: true}"), 422, []string{"E_UNSUPPORTED /resources/gpus", "E_VALUE /resources/gpu_memory_spill"}},
	{"secret in the way", "", with("secrets: [{name: hub_token, file: /etc/hub}, {name: a, file: /run/secrets}, {name: b, file: run/b}]"), 422, []string{"E_MOUNT_TARGET /secrets/0/file", "E_MOUNT_TARGET /secrets/1/file", "E_MOUNT_TARGET /secrets/2/file"}},
	{"secret in a dataset", "", with("datasets: [{name: d, target: /data}]", "secrets: [{name: a, file: /data/a}, {name: b, file: /run/secrets/b}, {name: c, file: /run/secrets/b/c}]"), 422, []string{"E_MOUNT_DUP /secrets/0/file", "E_MOUNT_DUP /secrets/2/file"}},
	{"secret over the working directory", "", with("workdir: /opt/app", "secrets: [{name: a, file: /opt}]"), 422, []string{"E_MOUNT_DUP /secrets/0/file"}},
	{"77 negative cores", "", with("resources: {cpus: -1}"), 422, []string{"E_RANGE /resources/cpus"}},
	{"78 shm above memory", "", with("resources: {memory: 32MiB, shm_size: 64MiB}"), 422, []string{"E_RANGE /resources/shm_size"}},
	{"79 timeouts", "", with("limits: {max_trials: 1, max_duration: 0, max_trial_duration: 8d}"), 422, []string{"E_TIMEOUT /limits/max_duration", "E_TIMEOUT /limits/max_trial_duration"}},
	{"duration without unit", "", with("limits: {max_trials: 1, max_duration: 90}"), 422, []string{"E_UNIT /limits/max_duration"}},
	{"80 retries", "", with("retry: {max_attempts: 1000}"), 422, []string{"E_RETRIES /retry/max_attempts"}},
	{"81 probe above trial", "", with("probe: {max_duration: 2m}", "limits: {max_trials: 1, max_trial_duration: 1m}"), 422, []string{"E_TIMEOUT /probe/max_duration"}},
	{"probe off, memory unknown", "", with("probe: {mode: off}"), 422, []string{"E_MEM /resources/memory"}},
	{"enum", "", with("resources: {device: tpu}", "probe: {mode: never}"), 422, []string{"E_VALUE /resources/device", "E_VALUE /probe/mode"}},
	{"stage without a name, main, twice", "", with("stages: [{name: A, command: [a]}, {name: main, command: [a]}, {name: b, command: [a]}, {name: b, command: [a]}]"), 422, []string{"E_STAGE /stages/0/name", "E_STAGE /stages/1/name", "E_STAGE /stages/3/name"}},
	{"stage that is all, paths to no earlier stage", "", "name: a\nimage: a:1\ncommand: [a, '--x=/trial/stages/featurs/x', --all=/trial/stages, '/trial/stages/{{s}}', '/trial/stages/a{{s}}', '/trial/stages/$X']\nparameters: [{name: s, values: [features]}]\nstages: [{name: all, command: [a]}, {name: features, command: [a, /trial/stages/features/x, /trial/stages/all/x]}]\nsearch: {algorithm: grid}\n", 422, []string{"E_STAGE /command/1", "E_STAGE /stages/0/name", "E_STAGE /stages/1/command/1"}},
	{"stage that says nothing", "", with("stages: [{name: a}]"), 422, []string{"E_STAGE /stages/0"}},
	{"stage that reads nobody", "", with("stages: [{name: a, parameters: [l]}, {name: b, command: [x, '--l={{l}}']}, {name: c, parameters: [lr, lr]}]"), 422, []string{"E_STAGE /stages/0/parameters/0", "E_TEMPLATE_PARAM /stages/1/command/1", "E_STAGE /stages/2/parameters/1"}},
	{"stage that reads more than it says", "", with("stages: [{name: a, command: [x, '--lr={{lr}}'], parameters: []}]"), 422, []string{"E_STAGE /stages/0/parameters"}},
	{"stage without the value of an option", "", "name: a\nimage: a:1\ncommand: [a, --lr, '{{lr}}', '--n={{n}}']\nparameters: [{name: lr, values: [1, 2]}, {name: n, values: [1]}]\nstages: [{name: b, parameters: [n]}]\nsearch: {algorithm: grid}\n", 422, []string{"E_COND /stages/0/parameters"}},
	{"stage without a program", "", "name: a\nimage: a:1\ncommand: ['bin/{{lr}}', '--n={{n}}']\nparameters: [{name: lr, values: [1, 2]}, {name: n, values: [1]}]\nstages: [{name: b, parameters: [n]}]\nsearch: {algorithm: grid}\n", 422, []string{"E_COND /stages/0/parameters"}},
	{"nine stages", "", with("stages: [{name: a1, command: [x]}, {name: a2, command: [x]}, {name: a3, command: [x]}, {name: a4, command: [x]}, {name: a5, command: [x]}, {name: a6, command: [x]}, {name: a7, command: [x]}, {name: a8, command: [x]}, {name: a9, command: [x]}]"), 422, []string{"E_TOO_MANY /stages"}},
	{"stage in no image, in unified memory", "", with("stages: [{name: a, command: [x], image: B, resources: {gpu_memory_spill: true, memory: 32MiB, shm_size: 64MiB}}]"), 422, []string{"E_IMAGE /stages/0/image", "E_UNSUPPORTED /stages/0/resources/gpu_memory_spill", "E_RANGE /stages/0/resources/shm_size"}},
	{"data set in no version", "", with("datasets: [{name: d, target: /data, version: v2}]"), 422, []string{"E_DATASET /datasets/0/version"}},
	{"data set below the stages", "", with("datasets: [{name: d, target: /trial/stages/a}]"), 422, []string{"E_MOUNT_TARGET /datasets/0/target"}},
	{"metrics from elsewhere", "", with("metrics: {source: kafka}"), 422, []string{"E_VALUE /metrics/source"}},
	{"pattern of event files", "", with("metrics: {source: tensorboard, pattern: '(?P<name>a)(?P<value>b)'}"), 422, []string{"E_METRICS /metrics/pattern"}},
	{"pattern", "", with("metrics: {source: stdout, pattern: '('}"), 422, []string{"E_METRICS /metrics/pattern"}},
	{"all at once, in order", "", "name: ''\nimage: A\ncommand: [a, '{{b}}']\nretry: {max_attempts: 0}\nfoo: 1\n", 400, []string{"E_NAME /name", "E_IMAGE /image", "E_TEMPLATE_PARAM /command/1", "E_RETRIES /retry/max_attempts", "E_UNKNOWN_FIELD /foo"}},
}

func TestBadSpecs(t *testing.T) {
	t.Parallel()

	var golden strings.Builder

	for _, test := range bad {
		_, err := spec.Decode([]byte(test.doc), test.contentType)

		var refused *berth.SpecError
		require.ErrorAs(t, err, &refused, test.name)

		got := make([]string, 0, len(refused.Problems))
		fmt.Fprintf(&golden, "== %s\n", test.name)

		for _, p := range refused.Problems {
			got = append(got, p.Code+" "+p.Pointer)
			fmt.Fprintf(&golden, "%s %s\n  %s\n", p.Code, p.Pointer, p.Message)
		}

		require.Equal(t, test.want, got, "%s:\n%v", test.name, err)
		require.Equal(t, test.status == 400, refused.Wire, test.name)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}

	const file = "testdata/messages.golden"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(golden.String()), 0o600))
	}

	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String(), "go test ./internal/sweepfile/spec -update accepts new messages")
}

func TestManyProblemsAreCounted(t *testing.T) {
	t.Parallel()

	var doc strings.Builder
	for i := range 500 {
		fmt.Fprintf(&doc, "key%d: 1\n", i)
	}

	_, err := spec.Decode([]byte(doc.String()), "")

	var refused *berth.SpecError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 101)
	require.Equal(t, "E_MORE", refused.Problems[100].Code)
}

// TestCodesAreExplained ties the codes in the tests to docs/errors.md.
func TestCodesAreExplained(t *testing.T) {
	t.Parallel()

	docs, err := os.ReadFile("../../../docs/errors.md")
	require.NoError(t, err)

	source, err := os.ReadFile("codes.go")
	require.NoError(t, err)

	for line := range strings.SplitSeq(string(source), "\n") {
		if _, code, ok := strings.Cut(line, `= "`); ok {
			code, _, _ = strings.Cut(code, `"`)
			require.Contains(t, string(docs), "`"+code+"`")
		}
	}
}
