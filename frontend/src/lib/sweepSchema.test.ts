import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { help, offers, type Schema } from "@/lib/sweepSchema";

// The server's schema, so that each completion is valid.
const schema = JSON.parse(readFileSync("../internal/sweepfile/spec/schema.json", "utf8")) as Schema;

/** | is the cursor, or stands before and after the range. */
function cut(marked: string) {
  const [before = "", middle = "", after] = marked.split("|");
  const range = { from: before.length, to: before.length + (after === undefined ? 0 : middle.length) };

  return { file: before + middle + (after ?? ""), range };
}
const offered = (marked: string) => {
  const { file, range } = cut(marked);

  return offers(schema, file, range).map((offer) => offer.text);
};

describe("offers", () => {
  it.each([
    ["fields of a mapping, not those that it has", "objective:\n  metric: a\n  |", ["goal", "target", "strategy"]],
    ["the same in one line", "objective: {metric: a, |}", ["goal", "target", "strategy"]],
    ["the same of an item of a list", "objective: [{metric: a, |}]", ["goal", "target", "strategy"]],
    ["the same in an unfinished line", "objective: {metric: a, |", ["goal", "target", "strategy"]],
    ["fields of a mapping that has none yet", "name: a\nretry:\n  |\nimage: b\n", ["max_attempts"]],
    ["the field in place of a part of its name", "search:\n  |al|\n", ["algorithm", "startup", "from", "seed"]],
    ["the field in place of one that has a value", "probe:\n  |mod|: full\n", ["mode", "max_duration"]],
    ["values that are listed", "search: {algorithm: |}", ["auto", "gp", "grid", "list", "random", "sobol", "tpe"]],
    ["values on a line with its field", "objective:\n  metric: a\n  goal: |max|\n", ["maximize", "minimize"]],
    ["true and false", "network: |", ["true", "false"]],
    ["what stands beside a number", "limits: {max_parallel: |}", ["auto"]],
    ["the version", "version: |", ["1"]],
    ["fields of a new dataset", "datasets:\n  - |", ["name", "target", "version"]],
    ["fields of a second one", "datasets:\n  - {name: a, target: /b}\n  - name: c\n    |", ["target", "version"]],
    ["a field above others", "objective:\n  |go|\n  metric: a\nretry: {}\n", ["goal", "target", "strategy"]],
    ["the same of an item", "datasets:\n  - |na|\n    target: /b\n", ["name", "version"]],
    ["nothing that stands below a comment", "retry:\n  |\n\n  # more\n  max_attempts: 2\n", []],
    ["auto for a size", "resources: {gpu_memory: |}", ["auto"]],
    ["nothing below a list's items at their indentation", "parameters:\n  - {name: a}\n  |", []],
    ["nothing at an indentation that no field has", "objective:\n  metric: a\n |", []],
    ["nothing in a text of several lines", "name: some\n  |go|\n  text\n", []],
    ["nothing in a text as it is", "name: >\n  some\n  |go|\n  text\n", []],
    ["nothing where a text is free", "image: |", []],
    ["nothing for a mapping beside its field", "limits: |", []],
    ["nothing in a comment", "name: a # |\n", []],
    ["nothing in a longer text", "name: some |\n", []],
    ["nothing below a field that the file must not have", "odd:\n  |", []],
    ["nothing among names that a person makes up", "labels: {|}", []],
  ])("%s", (_, marked, texts) => expect(offered(marked)).toEqual(texts));

  it("all fields of a file, those that it needs first", () => {
    const texts = offered("|");
    expect(texts.slice(0, 3)).toEqual(["name", "image", "command"]);
    expect(texts).toHaveLength(Object.keys(schema.properties ?? {}).length);
  });

  it("the fields of a file above others, also on an empty line", () => {
    expect(offered("name: a\n|li|\nobjective:\n  metric: a\n")).toContain("limits");
    expect(offered("name: a\n|\nobjective:\n  metric: a\n")).toContain("limits");
  });

  it("with what a field holds, and what it means", () => {
    const { file, range } = cut("limits:\n  |");
    const all = offers(schema, file, range);
    expect(all.find((offer) => offer.text === "max_parallel")).toEqual({
      text: "max_parallel",
      kind: "auto or whole number",
      help: "Trials at once; auto = as many as fit. Default: auto.",
    });
    expect(all.find((offer) => offer.text === "max_trial_duration")).toEqual({
      text: "max_trial_duration",
      kind: "text",
      help: "Of one attempt; at most 7d. Such as 90s, 10m, 2h or 1d. Default: 24h.",
    });
  });
});

describe("help", () => {
  it.each([
    [
      "a field",
      "|objective|: {metric: a}",
      "What is best; or a list of up to 4, of which lists and charts show the first.",
    ],
    ["a field without a description", "|retry|: {max_attempts: 2}", ""],
    [
      "a field with choices",
      "objective: {metric: a, |goal|: minimize}",
      "One of maximize, minimize. Default: maximize.",
    ],
    [
      "a size, once",
      "resources: {|memory|: 2GiB}",
      "Of the host; auto = measured by a probe. Bytes, or such as 1200MiB or 2GB. Default: auto.",
    ],
    ["a value", "objective: {metric: a, goal: |minimize|}", "One of maximize, minimize. Default: maximize."],
    [
      "a parameter's field",
      "parameters:\n  - {name: a, |log|: true}",
      "Uniform in its logarithm; min above 0. Default: false.",
    ],
    ["a field that is not known", "|odd|: 1", ""],
    ["a comment", "name: a # |word|", ""],
  ])("of %s", (_, marked, text) => {
    const { file, range } = cut(marked);
    expect(help(schema, file, range)).toBe(text);
  });
});
