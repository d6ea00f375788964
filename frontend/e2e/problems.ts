/** The problems of a sweep file, and the place where the page must show each. */
export interface Problem {
  code: string;
  pointer: string;
  /** at is a part of the line that is marked. */
  at: string;
  /** field is the label of the form's field; undefined = the form has none for it. */
  field?: string;
}

export interface BadFile {
  name: string;
  text: string;
  want: Problem[];
}

const base = `name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}"]
parameters:
  - {name: lr, min: 0.001, max: 0.1, log: true}
limits: {max_trials: 5}
`;

/** changed replaces or adds top-level sections of the base file; an empty section is taken out. */
function changed(...sections: string[]): string {
  const parts = new Map(base.split(/\n(?=\w)/).map((part) => [part.split(":")[0] ?? "", part.trimEnd()]));
  for (const section of sections) {
    const [key = ""] = section.split(":");
    if (section === `${key}:`) parts.delete(key);
    else parts.set(key, section);
  }

  return `${[...parts.values()].join("\n")}\n`;
}

/** parameters is a file whose command passes all values. */
function parameters(...rows: string[]): string {
  return changed(
    `parameters:\n${rows.map((row) => `  - ${row}`).join("\n")}`,
    "command: [train, /trial/in/params.json]",
  );
}

/** one is a file with one problem. */
function one(code: string, pointer: string, text: string, at: string, field?: string): BadFile {
  const problem = { code, pointer, at, ...(field !== undefined && { field }) };

  return { name: `${code} ${pointer} (${at.slice(0, 40)})`, text, want: [problem] };
}

/** ofSection is a problem of one line, which replaces a section. */
function ofSection(code: string, pointer: string, section: string, field?: string, ...more: string[]): BadFile {
  return one(code, pointer, changed(section, ...more), section.split("\n").at(-1) ?? "", field);
}

/** ofRow is a problem of the first parameter. */
function ofRow(code: string, below: string, row: string, field?: string): BadFile {
  return one(code, `/parameters/0${below}`, parameters(row), row, field);
}

const long = (n: number) => "x".repeat(n);
const deep = (n: number) => `${"{a: ".repeat(n)}1${"}".repeat(n)}`;

/** Every way in which a file that is typed can be refused: the cases of internal/sweepfile/spec/bad_test.go, in its order. */
export const badFiles: BadFile[] = [
  // The document
  one("E_BODY_EMPTY", "", " \n", " "),
  one("E_YAML", "", changed("name: ["), "image:"), // where the parser stops
  one("E_YAML", "", `${base}---\nname: b\n`, "---"),
  one("E_YAML", "", `${base}workdir: "/app\n`, 'workdir: "/app'),
  one("E_DUP_KEY", "/name", `${base}name: again\n`, "name: again"),
  one("E_UNKNOWN_FIELD", "/parmeters", changed("parmeters: []"), "parmeters"),
  one("E_UNKNOWN_FIELD", "/retry/max_atempts", changed("retry: {max_atempts: 2}"), "max_atempts"),
  ofRow("E_UNKNOWN_FIELD", "/mix", "{name: a, mix: 1, max: 2}", "Parameter a"),
  one("E_DEPTH", "", changed(`labels: ${deep(40)}`), "labels"),
  one("E_DEPTH", "", changed("labels: &a {x: y}"), "labels"),
  ofSection("E_CHAR", "/name", 'name: "a\\0b"', "Name"),
  ofSection("E_CHAR", "/name", "name: a\u202eb", "Name"),
  one("E_TYPE", "", "- a\n- b\n", "- a"),
  ofSection("E_TYPE", "/name", "name: 5", "Name"),
  ofSection("E_TYPE", "/image", "image: [a]", "Image"),
  ofSection("E_TYPE", "/limits/max_trials", 'limits: {max_trials: "5"}', "Trials at most"),
  ofSection("E_TYPE", "/limits/max_parallel", "limits: {max_trials: 5, max_parallel: many}", "Trials at once"),
  ofSection("E_TYPE", "/limits", "limits: 5", "Trials at most"),
  ofSection("E_TYPE", "/search", "search: grid", "Algorithm"),
  ofSection("E_TYPE", "/search/algorithm", "search: {algorithm: 5}", "Algorithm"),
  ofSection("E_TYPE", "/search/seed", "search: {seed: 1.5}"),
  ofSection("E_TYPE", "/objective", "objective: loss", "Metric"),
  ofSection("E_TYPE", "/objective/metric", "objective: {metric: 5}", "Metric"),
  ofSection("E_FILL_IN", "/objective/metric", "objective: {metric: REPLACE-ME, goal: minimize}", "Metric"),
  ofSection("E_TYPE", "/objective/goal", "objective: {metric: loss, goal: 5}", "Goal"),
  one(
    "E_TYPE",
    "/parameters",
    changed("parameters: {lr: {min: 0, max: 1}}", "command: [a]"),
    "parameters",
    "Parameters",
  ),
  ofRow("E_TYPE", "", "lr", "Parameter"),
  ofRow("E_TYPE", "/min", "{name: a, min: low, max: 2}", "From of a"),
  ofRow("E_TYPE", "/max", "{name: a, min: 1, max: [2]}", "To of a"),
  ofRow("E_TYPE", "/values", "{name: a, values: x}", "Choices, with commas of a"),
  ofRow("E_TYPE", "/values/1", "{name: a, values: [x, [y]]}"),
  ofRow("E_TYPE", "/log", "{name: a, min: 1, max: 2, log: 1}", "Parameter a"),
  ofRow("E_TYPE", "/memory", "{name: a, min: 1, max: 2, memory: 1}", "Parameter a"),
  ofSection("E_TYPE", "/command", "command: python3 train.py", "Command"),
  ofSection("E_TYPE", "/command/1", "command: [train, 5]", "Command"),
  ofSection("E_TYPE", "/environment_variables/TF_X", "environment_variables: {TF_X: 1}"),
  ofSection("E_RANGE", "/search/seed", "search: {seed: 9007199254740993}"),
  {
    name: "E_MORE: more than 100 problems",
    text: `${base}${Array.from({ length: 120 }, (_, i) => `key${i}: 1\n`).join("")}`,
    want: [
      ...Array.from({ length: 100 }, (_, i) => ({ code: "E_UNKNOWN_FIELD", pointer: `/key${i}`, at: `key${i}: ` })),
      { code: "E_MORE", pointer: "", at: "name: digits" },
    ],
  },

  // Names, image, command
  ofSection("E_VERSION", "/version", "version: 2"),
  ofSection("E_NAME", "/name", "name: ''", "Name"),
  one("E_NAME", "/name", changed("name:"), "image:", "Name"),
  ofSection("E_NAME", "/name", `name: ${long(201)}`, "Name"),
  ofSection("E_NAME", "/name", "name: ../x", "Name"),
  ofSection("E_LABEL", "/labels/bad key", "labels: {'bad key': x}"),
  one("E_IMAGE", "/image", changed("image:"), "name: digits", "Image"),
  ofSection("E_IMAGE", "/image", "image: Digits:1", "Image"),
  ofSection("E_IMAGE", "/image", "image: 'a b'", "Image"),
  ofSection("E_IMAGE", "/image", "image: a@sha256:abc", "Image"),
  ofSection("E_CMD", "/command", "command: []", "Command"),
  ofSection("E_CMD", "/command/0", "command: ['']", "Command"),
  ofSection("E_CMD", "/command/0", 'command: ["{{o}}"]', "Command", "parameters: [{name: o, values: ['', a]}]"),
  ofSection("E_TEMPLATE", "/command/1", 'command: [train, "--lr={{lr}"]', "Command"),
  ofSection("E_TEMPLATE_PARAM", "/command/1", 'command: [train, "--lr={{l}}"]', "Command"),
  ofSection("E_CMD_SIZE", "/command", `command: [train, ${long(140_000)}]`, "Command"),
  ofSection(
    "E_ARG_DASH",
    "/command/1",
    'command: [train, "{{x}}"]',
    "Command",
    "parameters: [{name: x, min: -1, max: 2}]",
  ),
  {
    name: "two elements of the command at once",
    text: changed('command: [train, "--a={{a}}", "--b={{b}}"]'),
    want: [
      { code: "E_TEMPLATE_PARAM", pointer: "/command/1", at: "command:", field: "Command" },
      { code: "E_TEMPLATE_PARAM", pointer: "/command/2", at: "command:", field: "Command" },
    ],
  },
  ofSection("E_WORKDIR", "/workdir", "workdir: app"),

  // Environment and mounts
  ofSection("E_ENV_NAME", "/environment_variables/1BAD", "environment_variables: {1BAD: x}"),
  ofSection("E_ENV_DENIED", "/environment_variables/LD_PRELOAD", "environment_variables: {LD_PRELOAD: /x.so}"),
  {
    name: "secrets",
    text: changed("secrets:\n  - {name: ../x, file: /run/secrets/x}"),
    want: [{ code: "E_SECRET", pointer: "/secrets/0/name", at: "../x" }],
  },
  {
    name: "datasets",
    text: changed("datasets:").concat(
      "datasets:\n  - {name: /home/me, target: /data}\n  - {name: ../../etc, target: /data/b}\n" +
        "  - {name: d, target: /proc}\n  - {name: e, target: /data/c}\n  - {name: f, target: /data/c}\n",
    ),
    want: [
      { code: "E_MOUNT_DENIED", pointer: "/datasets/0/name", at: "/home/me" },
      { code: "E_DATASET", pointer: "/datasets/1/name", at: "../../etc" },
      { code: "E_MOUNT_TARGET", pointer: "/datasets/2/target", at: "/proc" },
      { code: "E_MOUNT_DUP", pointer: "/datasets/4/target", at: "name: f" },
    ],
  },

  // Search space
  one(
    "E_SPACE_EMPTY",
    "/parameters",
    changed("parameters: []", "command: [a]", "search: {algorithm: grid}"),
    "parameters",
    "Parameters",
  ),
  one(
    "E_SPACE_EMPTY",
    "/parameters",
    `${parameters("{name: n, min: 1, max: 9}")}forbid: ['n > 0']\n`,
    "name: n",
    "Parameters",
  ),
  one("E_SPACE_EMPTY", "/enqueue", changed("search: {algorithm: list}"), "name: digits"),
  ofRow("E_RANGE", "/min", "{name: lr, min: 2, max: 1}", "From of lr"),
  ofRow("E_RANGE", "/min", "{name: n, type: int, min: 0.5, max: 2}", "From of n"),
  ofRow("E_LOG_RANGE", "/min", "{name: lr, min: 0, max: 0.1, log: true}", "From of lr"),
  ofRow("E_STEP", "/step", "{name: n, min: 0, max: 5, step: 6}", "Parameter n"),
  ofRow("E_CHOICE", "/values", "{name: o, values: []}", "Choices, with commas of o"),
  ofRow("E_CHOICE", "/values/1", `{name: o, values: [a, ${long(40_000)}]}`, "Choices, with commas of o"),
  {
    name: "two choices at once",
    text: parameters("{name: o, values: [1, 2, 1.0, 2]}"),
    want: [
      { code: "E_CHOICE_DUP", pointer: "/parameters/0/values/2", at: "name: o", field: "Choices, with commas of o" },
      { code: "E_CHOICE_DUP", pointer: "/parameters/0/values/3", at: "name: o", field: "Choices, with commas of o" },
    ],
  },
  ofRow("E_FLOAT", "/max", "{name: x, min: 0, max: 1e999}", "To of x"),
  ofRow("E_FLOAT", "/min", "{name: x, min: .nan, max: 1}", "From of x"),
  one("E_PARAM_UNUSED", "/parameters/0", changed("command: [train]"), "name: lr", "Parameter lr"),
  one("E_GRID", "/parameters/0", changed("search: {algorithm: grid}"), "name: lr", "Parameter lr"),
  one(
    "E_TOO_MANY",
    "/parameters",
    `${parameters("{name: a, min: 1, max: 1000}", "{name: b, min: 1, max: 101}")}search: {algorithm: grid}\n`,
    "name: a",
    "Parameters",
  ),
  {
    name: "two names that clash",
    text: parameters("{name: lr, value: 1}", "{name: LR, value: 2}"),
    want: [{ code: "E_PARAM_DUP", pointer: "/parameters/1/name", at: "LR", field: "Name of LR" }],
  },
  ofRow("E_COND_CYCLE", "/when/a", "{name: a, values: [x], when: {a: [x]}}", "Parameter a"),
  ofRow("E_COND", "/when/nobody", "{name: a, values: [x], when: {nobody: [x]}}", "Parameter a"),
  ofRow("E_PARAM_NAME", "/name", "{name: learning-rate, value: 1}", "Name of learning-rate"),
  ofRow("E_PARAM_NAME", "/name", "{value: 1}", "Name of parameter"),
  ofRow("E_PARAM", "/step", "{name: a, values: [x], step: 2}", "Parameter a"),
  ofRow("E_PARAM", "/max", "{name: b, value: 1, max: 2}", "Parameter b"),
  ofRow("E_PARAM", "/max", "{name: a, type: int, min: 1}", "To of a"),
  ofRow("E_PARAM", "/type", "{name: b}", "Type of b"),
  ofRow("E_PARAM", "/value", `{name: f, value: ${long(40_000)}}`, "Value of f"),
  ofRow("E_VALUE", "/type", "{name: a, type: double, min: 0, max: 1}", "Type of a"),
  ofRow("E_PROBABILITIES", "/probabilities", "{name: a, values: [x, y], probabilities: [0.5, 0.4]}", "Parameter a"),
  ofRow("E_DEFAULT", "/default", "{name: a, min: 1, max: 5, default: 6}", "Parameter a"),
  ofRow("E_EXPR", "/expr", "{name: a, expr: 1 +}", "Parameter a"),
  ofSection("E_EXPR", "/forbid/0", "forbid: ['lr + 1']"),
  ofSection("E_ENQUEUE", "/enqueue/0/lr", "enqueue: [{lr: 5}]"),

  // Search, limits, resources
  ofSection("E_ALGO", "/search/algorithm", "search: {algorithm: magic}", "Algorithm"),
  ofSection("E_OBJECTIVE", "/search/algorithm", "search: {algorithm: tpe}", "Algorithm"),
  ofSection("E_TRIALS", "/limits/max_trials", "limits: {max_trials: 0}", "Trials at most"),
  one("E_TRIALS", "/limits/max_trials", changed("limits:"), "name: digits", "Trials at most"),
  ofSection("E_CONCURRENCY", "/limits/max_parallel", "limits: {max_trials: 5, max_parallel: 0}", "Trials at once"),
  ofSection("E_OBJECTIVE", "/objective/metric", "objective: {goal: minimize}", "Metric"),
  ofSection("E_OBJECTIVE", "/objective/0/target", "objective: [{metric: a, target: 1}, {metric: b}]", "Metric"),
  ofSection("E_CONSTRAINT", "/constraints/0", "constraints: [{metric: b}]", undefined, "objective: {metric: a}"),
  ofSection("E_EARLY_STOP", "/early_stop", "early_stop: {rule: asha}", "Early stopping", "objective: {metric: loss}"),
  ofSection("E_FROM", "/search/from", "search: {algorithm: random, from: [digits]}"),
  ofSection("E_STAGE", "/stages/0/name", "stages: [{name: main, command: [a]}]"),
  ofSection("E_STAGE", "/stages/0", "stages: [{name: a}]"),
  ofSection("E_DIRECTION", "/objective/goal", "objective: {metric: a, goal: up}", "Goal"),
  {
    name: "several GPUs",
    text: changed("resources: {gpus: 2}"),
    want: [{ code: "E_UNSUPPORTED", pointer: "/resources/gpus", at: "gpus" }],
  },
  ofSection("E_METRICS", "/metrics/pattern", "metrics: {source: stdout, pattern: '('}"),
  ofSection("E_MEM", "/resources/memory", "resources: {memory: 0}"),
  ofSection("E_UNIT", "/resources/memory", "resources: {memory: 10XB}"),
  ofSection("E_VALUE", "/resources/device", "resources: {device: tpu}"),
  ofSection("E_TIMEOUT", "/limits/max_duration", "limits: {max_trials: 1, max_duration: 0s}"),
  ofSection("E_RETRIES", "/retry/max_attempts", "retry: {max_attempts: 1000}"),
  ofSection("E_UNSATISFIABLE", "/resources/memory", "resources: {memory: 900TiB}"),
];

/** Codes that no file can have which a person types here, and why. */
export const otherwise: Record<string, string> = {
  E_BODY_TOO_LARGE: "answered before the file is read; it has a test of its own",
  E_CONTENT_TYPE: "the page says application/yaml",
  E_JSON: "the page says application/yaml",
  E_UTF8: "a browser sends UTF-8",
  E_QUOTA: "a flag of the server",
  E_IMAGE_DIGEST: "a flag of the server",
  E_IMAGE_DENIED: "a flag of the server",
  E_NETWORK_DENIED: "a flag of the server",
};
