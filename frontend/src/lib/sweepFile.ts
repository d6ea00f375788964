import { isCollection, isMap, isScalar, isSeq, parseDocument, type Document, type Pair } from "yaml";

/** One row of the form: a parameter as far as the form knows it. */
export interface ParameterRow {
  name: string;
  kind: "float" | "int" | "categorical" | "fixed" | "other";
  min: string;
  max: string;
  log: boolean;
  values: string; // separated by commas
  memory: boolean;
}

/** What the form shows of a sweep file. Numbers are texts, so that half a number can be typed. */
export interface FormModel {
  name: string;
  image: string;
  command: string; // one argument a line
  metric: string;
  goal: string;
  algorithm: string;
  maxTrials: string;
  maxParallel: string;
  parameters: ParameterRow[];
}

export type Path = (string | number)[];

/** readForm is the form of a text; undefined when the text is no mapping that can be read. */
export function readForm(text: string): FormModel | undefined {
  const doc = parseDocument(text);
  if (doc.errors.length > 0 || !isMap(doc.contents)) return undefined;

  const command = doc.getIn(["command"], true);
  const rows = doc.getIn(["parameters"], true);

  return {
    name: textAt(doc, ["name"]),
    image: textAt(doc, ["image"]),
    command: isSeq(command) ? command.items.map((_, i) => textAt(doc, ["command", i])).join("\n") : "",
    metric: textAt(doc, ["objective", "metric"]),
    goal: textAt(doc, ["objective", "goal"]),
    algorithm: textAt(doc, ["search", "algorithm"]),
    maxTrials: textAt(doc, ["limits", "max_trials"]),
    maxParallel: textAt(doc, ["limits", "max_parallel"]),
    parameters: isSeq(rows) ? rows.items.map((_, i) => readRow(doc, i)) : [],
  };
}

function readRow(doc: Document, i: number): ParameterRow {
  const at = (key: string) => textAt(doc, ["parameters", i, key]);
  const has = (key: string) => doc.hasIn(["parameters", i, key]);
  const values = doc.getIn(["parameters", i, "values"], true);

  return {
    name: at("name"),
    kind: kindOf(at("type"), has, `${at("min")}${at("max")}`),
    min: at("min"),
    max: at("max"),
    log: at("log") === "true",
    values: isSeq(values)
      ? values.items.map((_, j) => textAt(doc, ["parameters", i, "values", j])).join(", ")
      : at("value"),
    memory: at("memory") === "true",
  };
}

function kindOf(type: string, has: (key: string) => boolean, bounds: string): ParameterRow["kind"] {
  if (has("expr") || has("when") || type === "derived") return "other"; // written in the text alone
  if (type === "float" || type === "int" || type === "categorical" || type === "fixed") return type;
  if (has("values")) return "categorical";
  if (has("value")) return "fixed";

  return /[.eE]/.test(bounds) ? "float" : "int";
}

function textAt(doc: Document, path: Path): string {
  const node = doc.getIn(path, true);
  if (!isScalar(node)) return "";

  // A number stays as it was written: 1e-4 is not turned into 0.0001.
  return node.source !== undefined && typeof node.value === "number" ? node.source : scalarText(node.value);
}

function scalarText(v: unknown): string {
  return typeof v === "string" ? v : v === null || v === undefined ? "" : JSON.stringify(v);
}

/** setField changes one value of a text and leaves all else, comments too, as it is. An empty value removes the field. */
export function setField(text: string, path: Path, value: unknown): string {
  return edit(text, (doc) => {
    if (value === "" || value === undefined) doc.deleteIn(path);
    else if (isScalar(doc.getIn(path, true))) setScalar(doc, path, value);
    else doc.setIn(path, flow(doc, value));
  });
}

function setScalar(doc: Document, path: Path, value: unknown): void {
  const node = doc.getIn(path, true);
  if (!isScalar(node) || typeof value === "object") {
    doc.setIn(path, flow(doc, value));

    return;
  }
  node.value = value;
  delete node.source;
}

export function setCommand(text: string, lines: string): string {
  return setField(
    text,
    ["command"],
    lines.split("\n").filter((line, i, all) => line !== "" || i < all.length - 1),
  );
}

/** setRow rewrites what the form knows of a parameter; fields that it does not know stay. */
export function setRow(text: string, i: number, row: ParameterRow): string {
  return edit(text, (doc) => {
    const at = (key: string): Path => ["parameters", i, key];
    if (!doc.hasIn(["parameters"])) doc.setIn(["parameters"], doc.createNode([]));
    if (!doc.hasIn(["parameters", i])) doc.addIn(["parameters"], flow(doc, { name: row.name }));

    const range = row.kind === "float" || row.kind === "int";
    const put = (key: string, value: unknown) => {
      if (value === undefined) doc.deleteIn(at(key));
      else if (isScalar(doc.getIn(at(key), true))) setScalar(doc, at(key), value);
      else doc.setIn(at(key), flow(doc, value));
    };

    put("name", row.name);
    if (row.kind === "other") return;
    put("type", row.kind === "categorical" ? undefined : row.kind);
    put("min", range ? scalar(row.min) : undefined);
    put("max", range ? scalar(row.max) : undefined);
    put("log", range && row.log ? true : undefined);
    put("values", row.kind === "categorical" ? list(row.values) : undefined);
    put("value", row.kind === "fixed" ? scalar(row.values) : undefined);
    put("memory", row.memory ? true : undefined);
    if (!range) ["step", "count"].forEach((key) => doc.deleteIn(at(key)));
  });
}

export function removeRow(text: string, i: number): string {
  return edit(text, (doc) => doc.deleteIn(["parameters", i]));
}

/** edit applies a change to the document; a text that cannot be read stays. */
function edit(text: string, change: (doc: Document) => void): string {
  const doc = parseDocument(text === "" ? "version: 1\n" : text);
  if (doc.errors.length > 0) return text;
  change(doc);

  return doc.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** flow is a node in one line, as the examples write lists and parameters. */
function flow(doc: Document, value: unknown) {
  const node = doc.createNode(value);
  if (isCollection(node)) node.flow = true;

  return node;
}

/** scalar is what a person meant by a text: a number, true, false, or the text. */
export function scalar(text: string): string | number | boolean {
  const trimmed = text.trim();
  if (trimmed === "true") return true;
  if (trimmed === "false") return false;
  const n = Number(trimmed);

  return trimmed !== "" && Number.isFinite(n) && /^[-+.\d]/.test(trimmed) ? n : trimmed;
}

function list(text: string): (string | number | boolean)[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")
    .map(scalar);
}

export interface TextRange {
  from: number;
  to: number;
}

/** rangeOf is where in a text a JSON pointer leads, or the nearest value above it that is there. */
export function rangeOf(text: string, pointer: string): TextRange {
  const doc = parseDocument(text);
  const steps = pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));

  let node: unknown = doc.contents;
  let range: TextRange = { from: 0, to: Math.min(text.length, Math.max(text.indexOf("\n"), 0)) };
  for (const step of steps) {
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find((one) => isScalar(one.key) && String(one.key.value) === step);
      if (!pair) break;
      range = rangeOfNode(pair.key) ?? range;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
    } else break;
    range = (isScalar(node) || isSeq(node) || isMap(node) ? rangeOfNode(node) : undefined) ?? range;
  }

  return range;
}

function rangeOfNode(node: unknown): TextRange | undefined {
  if (!isScalar(node) && !isSeq(node) && !isMap(node)) return undefined;
  const range = node.range;

  return range ? { from: range[0], to: Math.max(range[0], range[1]) } : undefined;
}

/** lineOf is the number of the line, from 1, that a place in a text is on. */
export function lineOf(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}
