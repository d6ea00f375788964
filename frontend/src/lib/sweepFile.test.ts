import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { oneTrial } from "@/lib/oneTrial";
import { readForm, removeRow, setCommand, setField, setRow, setStopRule, typed } from "@/lib/sweepFile";
import { lineOf, rangeOf } from "@/lib/sweepPlaces";

const text = `# A comment at the top.
version: 1
name: digits
image: a/b:1 # the image
command: [python3, train.py, "--lr={{lr}}"]
parameters:
  # how fast it learns
  - {name: lr, min: 1e-4, max: 0.1, log: true}
  - {name: batch, values: [32, 64], memory: true}
  - {name: epochs, type: fixed, value: 5}
  - {name: warm, type: derived, expr: "epochs * 2"}
search: {algorithm: random}
limits: {max_trials: 24}
`;

function form(from: string) {
  const model = readForm(from);
  if (!model) throw new Error("not read");

  return model;
}

function rowOf(from: string) {
  const [row] = form(from).parameters;
  if (!row) throw new Error("no row");

  return row;
}

describe("readForm", () => {
  it("reads the main fields", () => {
    const model = form(text);
    expect(model).toMatchObject({ name: "digits", image: "a/b:1", algorithm: "random", maxTrials: "24", metric: "" });
    expect(model.command).toBe("python3\ntrain.py\n--lr={{lr}}");
    expect(model.parameters.map((row) => row.kind)).toEqual(["float", "categorical", "fixed", "other"]);
    expect(model.parameters[0]).toMatchObject({ min: "1e-4", max: "0.1", log: true });
    expect(model.parameters[1]).toMatchObject({ values: "32, 64", memory: true });
  });

  it("gives nothing for a text that cannot be read", () => {
    expect(readForm("name: [")).toBeUndefined();
    expect(readForm("just a text")).toBeUndefined();
  });
});

describe("edits", () => {
  it("keep comments and all else", () => {
    const next = setField(text, ["name"], "other");
    expect(next).toBe(text.replace("name: digits", "name: other"));
  });

  it("leave a list of objectives as it is, also in an edit of a field that it has not", () => {
    const list = "objective:\n  - {metric: acc} # first\n  - {metric: ms, goal: minimize}\n";
    expect(form(list)).toMatchObject({ metric: "acc, ms", goal: "", objectiveInText: true });
    expect(form(text).objectiveInText).toBe(false);
    for (const value of ["loss", ""]) expect(setField(list, ["objective", "metric"], value)).toBe(list);
  });

  it("begin another rule of early stopping", () => {
    const asha = setField(setStopRule(text, "asha"), ["early_stop", "max"], typed("27"));
    expect(asha).toContain("early_stop: {rule: asha, max: 27}");
    expect((["rule", "max", "min"] as const).map(form(asha).earlyStop)).toEqual(["asha", "27", ""]);
    expect(setStopRule(asha, "median")).toContain("early_stop: {rule: median}");
    expect(setStopRule(asha, "")).toBe(text);
  });

  it("add what is not there and remove what is empty", () => {
    expect(setField(text, ["objective", "metric"], "loss")).toContain("metric: loss");
    expect(setField(text, ["limits", "max_trials"], "")).not.toContain("max_trials");
  });

  it("change one parameter, its comment kept", () => {
    const row = form(text).parameters[0];
    if (!row) throw new Error("no row");
    const next = setRow(text, 0, { ...row, max: "0.5", log: false });
    expect(next).toContain("# how fast it learns");
    expect(next).toContain("max: 0.5");
    expect(next).not.toContain("log: true");
    expect(form(next).parameters).toHaveLength(4);
  });

  it("turn a range into choices", () => {
    const row = form(text).parameters[0];
    if (!row) throw new Error("no row");
    expect(setRow(text, 0, { ...row, kind: "categorical", values: "0.1, adam" })).toContain("values: [0.1, adam]");
  });

  it("make a parameter of what is none", () =>
    expect(setRow("parameters: [x]\n", 0, { ...rowOf("parameters: [x]\n"), kind: "categorical" })).toBe(
      "parameters: [{values: []}]\n",
    ));

  it("add and remove a parameter", () => {
    const more = setRow(text, 4, {
      name: "width",
      kind: "int",
      min: "1",
      max: "8",
      log: false,
      values: "",
      memory: true,
    });
    expect(more).toContain("name: width");
    expect(form(removeRow(more, 4)).parameters).toHaveLength(4);
  });

  it("leave a broken text alone", () => expect(setField("name: [", ["name"], "x")).toBe("name: ["));

  it("set the command by lines", () => expect(setCommand(text, "a\nb c")).toContain("command: [a, b c]"));
});

describe("rangeOf", () => {
  it.each([
    ["/parameters/0/min", 8],
    ["/parameters/1", 9],
    ["/image", 4],
    ["/objective/metric", 1],
    ["", 1],
  ])("finds %s in line %d", (pointer, line) => expect(lineOf(text, rangeOf(text, pointer).from)).toBe(line));
});

describe("typed", () => {
  it.each(["1", "1e-4", "0.50", "1.0", "true", "adam", "Infinity", "-", "12345678901234567890"])(
    "writes %s as it was typed",
    (one) => expect(setField("a: b\n", ["x"], typed(one))).toBe(`a: b\nx: ${one === "-" ? '"-"' : one}\n`),
  );
});

describe("what was not changed stays as it was written", () => {
  const written = `seed: 9007199254740993
parameters:
  - {name: lr, min: 1.0, max: 1e-1, log: True}
  - {name: tag, values: ["32", 'a', 1.0, 2.50], memory: false}
  - {name: n, type: fixed, value: "5"}
objective:
`;
  const rows = form(written).parameters;

  it("on another parameter and in the same one", () => {
    expect(setRow(written, 0, { ...row(0), max: "0.5" })).toBe(written.replace("1e-1", "0.5"));
    expect(setRow(written, 1, { ...row(1), name: "label" })).toBe(written.replace("tag", "label"));
    expect(setRow(written, 1, { ...row(1), values: "32, a, 1.0, 2.50, 7" })).toBe(written.replace("2.50]", "2.50, 7]"));
  });

  it("is a text that looks like a number", () =>
    expect(setRow(written, 2, { ...row(2), name: "5" })).toContain('{name: "5", type: fixed, value: "5"}'));

  it("fills a bare key", () =>
    expect(setField(written, ["objective", "metric"], "loss")).toContain("objective:\n  metric: loss\n"));

  it("removes nothing from a bare key", () => expect(setField(written, ["objective", "metric"], "")).toBe(written));

  it("begins a bare list of parameters", () =>
    expect(setRow("parameters:\n", 0, { ...row(0), name: "x" })).toContain("name: x"));

  function row(i: number) {
    const one = rows[i];
    if (!one) throw new Error("no row");

    return one;
  }
});

it("makes a file try one assignment of what is searched", () => {
  const text = `version: 1
name: digits
parameters:
  - {name: lr, type: float, min: 0.1, max: 1}
  - {name: epochs, value: 5}
  - {name: twice, expr: epochs * 2}
  - {name: momentum, min: 0, max: 1, when: opt == "sgd"}
search: {algorithm: grid}
limits: {max_trials: 40, max_duration: 2h}
`;
  expect(parse(oneTrial(text, { lr: 0.25, epochs: 5, twice: 10 }))).toEqual({
    version: 1,
    name: "digits (again)",
    parameters: (parse(text) as { parameters: unknown }).parameters,
    search: { algorithm: "random" },
    enqueue: [{ lr: 0.25 }],
    limits: { max_trials: 1, max_duration: "2h" },
  });
});

it("keeps a text choice that looks like a number a text", () => {
  const text = `name: x
parameters:
  - {name: tf, values: ["2.10", "2.15"]}
  - {name: lr, values: [1e-4, 0.01]}
`;
  const one = parse(oneTrial(text, { tf: "2.10", lr: 0.01 })) as { enqueue: unknown };
  expect(one.enqueue).toEqual([{ tf: "2.10", lr: 0.01 }]);
});

it("leaves to the text what its fields cannot hold", () => {
  expect(rowOf('parameters: [{name: sizes, values: ["64,32", "128,16"]}]').kind).toBe("other");
  expect(rowOf("parameters: [{name: sizes, values: [a, b]}]").kind).toBe("categorical");
  expect(form('command: [sh, -c, "set -e\\npython3 train.py"]').commandInText).toBe(true);
  expect(form('command: [sh, -c, "python3 train.py"]').commandInText).toBe(false);
});
