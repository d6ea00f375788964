import { describe, expect, it } from "vitest";
import { lineOf, rangeOf, readForm, removeRow, scalar, setCommand, setField, setRow } from "@/lib/sweepFile";

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

describe("scalar", () => {
  it.each([
    ["1", 1],
    ["1e-4", 1e-4],
    ["true", true],
    ["adam", "adam"],
    ["Infinity", "Infinity"],
  ])("reads %s", (from, to) => expect(scalar(from)).toBe(to));
});
