import {
  isCollection,
  isMap,
  isScalar,
  isSeq,
  parse,
  parseDocument,
  Scalar,
  visit,
  type Document,
  type ParseOptions,
  type SchemaOptions,
  type DocumentOptions,
} from "yaml";

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

export type StopField = "rule" | "min" | "max" | "patience" | "above" | "below";

/** The form's view of a sweep file. Numbers are texts, so that half a number can be typed. */
export interface FormModel {
  name: string;
  image: string;
  command: string; // one argument a line
  commandInText: boolean; // an argument has line breaks: the form cannot show it
  metric: string; // of a list, all with commas between
  goal: string;
  objectiveInText: boolean; // it is a list, of which the form has no fields
  algorithm: string;
  earlyStop: (field: StopField) => string;
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
  const words = isSeq(command) ? command.items.map((_, i) => textAt(doc, ["command", i])) : [];
  const rows = doc.getIn(["parameters"], true);
  const objective = doc.getIn(["objective"], true);
  const metrics = isSeq(objective) ? objective.items.map((_, i) => textAt(doc, ["objective", i, "metric"])) : undefined;

  return {
    name: textAt(doc, ["name"]),
    image: textAt(doc, ["image"]),
    command: words.join("\n"),
    commandInText: words.some((word) => word.trimEnd().includes("\n")),
    metric: metrics?.join(", ") ?? textAt(doc, ["objective", "metric"]),
    goal: textAt(doc, ["objective", "goal"]),
    objectiveInText: metrics !== undefined,
    algorithm: textAt(doc, ["search", "algorithm"]),
    earlyStop: (field) => textAt(doc, ["early_stop", field]),
    maxTrials: textAt(doc, ["limits", "max_trials"]),
    maxParallel: textAt(doc, ["limits", "max_parallel"]),
    parameters: isSeq(rows) ? rows.items.map((_, i) => readRow(doc, i)) : [],
  };
}

function readRow(doc: Document, i: number): ParameterRow {
  const at = (key: string) => textAt(doc, ["parameters", i, key]);
  const has = (key: string) => doc.hasIn(["parameters", i, key]);
  const values = doc.getIn(["parameters", i, "values"], true);
  const choices = isSeq(values) ? values.items.map((_, j) => textAt(doc, ["parameters", i, "values", j])) : [];
  const apart = choices.every((choice) => choice !== "" && !choice.includes(",")); // as the form writes them

  return {
    name: at("name"),
    kind: apart ? kindOf(at("type"), has, `${at("min")}${at("max")}`) : "other",
    min: at("min"),
    max: at("max"),
    log: at("log") === "true",
    values: isSeq(values) ? choices.join(", ") : at("value"),
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
export function setField(text: string, path: Path, value: string | Scalar): string {
  return edit(text, (doc) => put(doc, path, value === "" ? undefined : value));
}

/** setStopRule begins another rule of early stopping with nothing of the one before; "" = none. */
export function setStopRule(text: string, rule: string): string {
  return edit(text, (doc) => {
    if (rule === "") doc.delete("early_stop");
    else doc.set("early_stop", flow(doc, { rule }));
  });
}

/** setCommand makes one argument of each line. The last line counts only when it has text. */
export function setCommand(text: string, lines: string): string {
  return edit(text, (doc) => put(doc, ["command"], commandLines(lines)));
}

export function commandLines(lines: string): string[] {
  return lines.split("\n").filter((line, i, all) => line !== "" || i < all.length - 1);
}

const range = ["min", "max", "log", "step", "count"];

/** The keys that a parameter has by its kind alone. */
const keysOf: Record<ParameterRow["kind"], string[]> = {
  float: range,
  int: range,
  categorical: ["values"],
  fixed: ["value"],
  other: [],
};

/** Kept is a parameter's earlier text under the keys of its earlier kinds. */
export type Kept = Map<string, unknown>;

/**
 * setRow writes the changed values of a parameter; the rest stays as it was written. The
 * keys of another kind move to kept, and come back with the kind.
 */
export function setRow(text: string, i: number, row: ParameterRow, kept: Kept = new Map()): string {
  return edit(text, (doc) => {
    if (!isSeq(doc.getIn(["parameters"], true))) doc.setIn(["parameters"], doc.createNode([]));
    const old = doc.hasIn(["parameters", i]) ? readRow(doc, i) : undefined;
    if (!old) doc.addIn(["parameters"], flow(doc, {}));

    const at = (key: string): Path => ["parameters", i, key];
    const set = (key: string, value: Written) => put(doc, at(key), value);
    const changed = (key: keyof ParameterRow) => old?.[key] !== row[key];

    if (changed("name")) set("name", row.name);
    if (row.kind === "other") return;
    const keys = keysOf[row.kind];
    if (changed("kind")) {
      set("type", row.kind === "categorical" ? undefined : row.kind);
      if (old) leave(doc, i, keysOf[old.kind], keys, kept);
      for (const key of keys) if (!doc.hasIn(at(key)) && kept.has(key)) doc.setIn(at(key), kept.get(key));
    }
    const fresh = (key: string) => changed("kind") && !doc.hasIn(at(key));

    if (keys === range && changed("min")) set("min", typed(row.min));
    if (keys === range && changed("max")) set("max", typed(row.max));
    if (keys === range && changed("log")) set("log", row.log ? typed("true") : undefined);
    if (row.kind === "categorical" && (changed("values") || fresh("values"))) set("values", items(doc, i, row.values));
    if (row.kind === "fixed" && (changed("values") || fresh("value"))) set("value", typed(row.values));
    if (changed("memory")) set("memory", row.memory ? typed("true") : undefined);
  });
}

/** leave moves to kept the values under keys that a parameter's new kind lacks, and forgets its old kind's kept values. */
function leave(doc: Document, i: number, old: string[], keys: string[], kept: Kept): void {
  for (const key of [...range, ...keysOf.categorical, ...keysOf.fixed]) {
    if (keys.includes(key)) continue;
    const path = ["parameters", i, key];
    if (doc.hasIn(path)) kept.set(key, doc.getIn(path, true));
    else if (old.includes(key)) kept.delete(key);
    put(doc, path, undefined);
  }
}

export function removeRow(text: string, i: number): string {
  return edit(text, (doc) => doc.deleteIn(["parameters", i]));
}

/** The value for put to write; undefined removes the key. */
type Written = string | string[] | Scalar | Scalar[] | undefined;

/**
 * put writes one value. A step of the path that holds no mapping, as in a bare `objective:`, becomes one; a list has
 * no fields, and stays.
 */
function put(doc: Document, path: Path, value: Written): void {
  if (typeof path.at(-1) === "string" && isSeq(doc.getIn(path.slice(0, -1), true))) return;
  if (value === undefined) {
    if (isCollection(doc.getIn(path.slice(0, -1), true))) doc.deleteIn(path);

    return;
  }

  for (let n = 1; n < path.length; n++) {
    const above = path.slice(0, n);
    if (doc.hasIn(above) && !isCollection(doc.getIn(above, true))) doc.setIn(above, doc.createNode({}));
  }

  const node = doc.getIn(path, true);
  if (!isScalar(node) || Array.isArray(value)) {
    doc.setIn(path, Array.isArray(value) ? flow(doc, value.map(literal)) : literal(value));

    return;
  }
  const next = literal(value);
  node.value = next.value;
  // A number stays plain; a text keeps its quotes.
  if (next.type !== undefined) node.type = next.type;
  delete node.source;
}

/** literal is a text as a node, in quotes where it would else be read as a number, true or null. */
export function literal(value: string | Scalar): Scalar {
  if (typeof value !== "string") return value;
  const node = new Scalar(value);
  if (typeof scalarOf(value) !== "string") node.type = Scalar.QUOTE_DOUBLE;

  return node;
}

/** typed is the meaning of a user's text: 0.50, 1.0 and 1e-4 are numbers and stay as they were typed. */
export function typed(text: string): Scalar {
  const node = new Scalar<unknown>(text.trim());
  const value = scalarOf(text.trim());
  if (typeof value === "boolean") node.value = value;
  if (typeof value === "number") node.type = Scalar.PLAIN;

  return value === null ? literal(text.trim()) : node;
}

/** scalarOf is how YAML reads a text that stands alone. */
function scalarOf(text: string): unknown {
  if (!/^[-+.\w~]+$/.test(text)) return text;

  try {
    return parse(text) as unknown;
  } catch {
    return text;
  }
}

/** items are the choices that a text lists; an existing one stays as it was written. */
function items(doc: Document, i: number, text: string): Scalar[] {
  const path: Path = ["parameters", i, "values"];
  const old = doc.getIn(path, true);
  const known = new Map<string, Scalar>();
  if (isSeq(old)) {
    for (const node of old.items) if (isScalar(node)) known.set(scalarText(node.value), node);
  }

  return listed(text).map((one) => known.get(one) ?? typed(one));
}

/** listed are the texts between commas, without empty ones. */
export function listed(text: string): string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

/** Numbers are read as texts, so that 1.0 and whole numbers above 2^53 are written as they were. */
const asWritten: ParseOptions & DocumentOptions & SchemaOptions = {
  customTags: (tags) => tags.filter((tag) => typeof tag === "string" || !/:(int|float)$/.test(tag.tag)),
};

/** yamlOf is a JSON text's value under a key, as YAML for people; "" without one. */
export function yamlOf(json: string, key: string): string {
  const doc: Document = parseDocument(json, asWritten);
  const node = doc.get(key, true);
  if (doc.errors.length > 0 || !isCollection(node)) return "";

  visit(node, {
    Collection: (_, one) => {
      one.flow = false;
    },
    Scalar: (_, one) => {
      if (one.type !== Scalar.PLAIN && typeof one.value === "string")
        one.type = literal(one.value).type ?? Scalar.PLAIN;
    },
  });
  doc.contents = node;

  return doc.toString({ lineWidth: 0 });
}

/** edit applies a change to the document; a text that cannot be read stays. */
export function edit(text: string, change: (doc: Document) => void): string {
  const doc = parseDocument(text === "" ? "version: 1\n" : text, asWritten);
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
