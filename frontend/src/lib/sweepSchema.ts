import { isMap, isScalar, parseDocument, visit, type Node, type Pair } from "yaml";
import { value as text } from "@/lib/format";
import type { Path } from "@/lib/sweepFile";
import type { TextRange } from "@/lib/sweepPlaces";

/** The used part of a JSON Schema, to help a user write a file. */
export interface Schema {
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  required?: string[];
  $ref?: string;
  $defs?: Record<string, Schema>;
}

/** Something that can be written at a place. */
export interface Offer {
  text: string;
  /** kind is the type of a field's value; "" = the offer is a value. */
  kind: string;
  help: string;
}

/** A text's place in a file, and the text. */
interface Place {
  path: Path;
  /** key: the text is, or can become, the name of a field of the mapping at path. */
  key: boolean;
  value: boolean;
  /** others are the fields that the mapping has beside it. */
  others: Set<string>;
}

const MARK = "berth0cursor";

/** offers are the possible texts in place of a range, required fields first. */
export function offers(root: Schema, file: string, range: TextRange): Offer[] {
  const place = placeOf(file, range);
  const here = place && at(root, place.path);
  if (!here) return [];

  const fields = place.key ? Object.entries(here.properties ?? {}).filter(([name]) => !place.others.has(name)) : [];
  const needed = (name: string) => (here.required?.includes(name) ? 0 : 1);

  return [
    ...fields
      .toSorted(([a], [b]) => needed(a) - needed(b))
      .map(([name, field]) => ({ text: name, kind: kindOf(root, field), help: helpOf(root, field) })),
    ...(place.value ? choices(root, here).map((one) => ({ text: one, kind: "", help: helpOf(root, here) })) : []),
  ];
}

/** help is the schema's description of the field whose name or value is in a range of a text; "" = none. */
export function help(root: Schema, file: string, range: TextRange): string {
  const place = placeOf(file, range);
  if (!place) return "";
  const word = file.slice(range.from, range.to);
  const field =
    (place.key ? at(root, [...place.path, word]) : undefined) ?? (place.value ? at(root, place.path) : undefined);

  return field ? helpOf(root, field) : "";
}

/**
 * placeOf reads the file with a mark in place of the range, and finds the mark: so the parser's word counts, in both
 * styles of YAML. A name without its colon is one text with the line below it, so one that is alone on its line is
 * tried with a colon, too.
 */
function placeOf(file: string, { from, to }: TextRange): Place | undefined {
  const [before, after] = [file.slice(0, from), file.slice(to)];
  const alone = /(^|\n)[ \t]*(- +)*$/.test(before) && /^[ \t]*(\r?\n|$)/.test(after);
  const plain = placeIn(before + MARK + after);
  const named = alone ? placeIn(`${before}${MARK}:${after}`) : undefined;

  return plain && named ? { ...plain, others: named.others } : (plain ?? named);
}

function placeIn(marked: string): Place | undefined {
  let place: Place | undefined;
  visit(parseDocument(marked), {
    Scalar: (role, node, above) => {
      if (node.value !== MARK) return undefined;
      const path = pathOf(above);
      const parent = above.at(-1);
      if (role === "key") {
        if (!inLine(marked, node, above.at(-2))) return visit.BREAK;
        place = { path: path.slice(0, -1), key: true, value: false, others: namesOf(above.at(-2)) };
      } else {
        // On a line of its own, or as an item, it can become a field; beside its field's name it is a value.
        const alone = typeof role === "number" || /(^|\n)\s*$/.test(marked.slice(0, node.range?.[0]));
        place = {
          path: typeof role === "number" ? [...path, role] : path,
          key: alone,
          value: true,
          others: new Set(isMap(parent) ? namesOf(parent) : []),
        };
      }

      return visit.BREAK;
    },
  });

  return place;
}

/** inLine: the parser takes a line with a wrong indentation for a field of a mapping further out; it is no such. */
function inLine(text: string, key: Node, map: Above[number] | undefined): boolean {
  if (!isMap(map) || map.flow === true) return true;
  const column = (node: unknown) => {
    const at = (isScalar(node) ? node.range?.[0] : undefined) ?? 0;

    return at - text.lastIndexOf("\n", at - 1);
  };

  return map.items.every((pair) => column(pair.key) === column(key));
}

type Above = readonly (Node | Pair | { contents: unknown })[];

/** pathOf are the names and numbers that lead to a node. */
function pathOf(above: Above): Path {
  const path: Path = [];
  above.forEach((node, i) => {
    const next = above[i + 1];
    if ("key" in node && isScalar(node.key)) path.push(String(node.key.value));
    else if ("items" in node && next !== undefined && !("key" in next)) path.push(node.items.indexOf(next as never));
  });

  return path;
}

function namesOf(map: Above[number] | undefined): Set<string> {
  if (!isMap(map)) return new Set();

  return new Set(map.items.map((pair) => (isScalar(pair.key) ? String(pair.key.value) : "")));
}

/** at is the schema of a path's target. */
function at(root: Schema, path: Path): Schema | undefined {
  let here: Schema | undefined = resolved(root, root);
  for (const step of path) {
    const more: boolean | Schema | undefined = here.additionalProperties;
    const next: Schema | undefined =
      typeof step === "number"
        ? here.items
        : (here.properties?.[step] ?? (typeof more === "object" ? more : undefined));
    if (!next) return undefined;
    here = resolved(root, next);
  }

  return here;
}

/** resolved follows a reference; keys beside it override it, such as a separate description. */
function resolved(root: Schema, schema: Schema): Schema {
  const { $ref: reference, ...own } = schema;
  const name = reference?.split("/").at(-1);
  const target = name === undefined ? undefined : root.$defs?.[name];
  if (!target) return schema;
  const described = [schema.description, target.description].filter((one) => one !== undefined);

  return {
    ...resolved(root, target),
    ...own,
    ...(described.length > 0 && { description: described.join(". ") }),
  };
}

/** choices are the values that a schema lists. */
function choices(root: Schema, schema: Schema): string[] {
  const { enum: listed = [], const: only, type, anyOf = [] } = resolved(root, schema);

  return [
    ...listed.map(text),
    ...(only === undefined ? [] : [text(only)]),
    ...(type === "boolean" ? ["true", "false"] : []),
    ...anyOf.flatMap((one) => choices(root, one)),
  ];
}

const kinds: Record<string, string> = {
  object: "mapping",
  array: "list",
  string: "text",
  integer: "whole number",
  number: "number",
  boolean: "true or false",
};

function kindOf(root: Schema, schema: Schema): string {
  const { type, anyOf = [], enum: listed, const: only } = resolved(root, schema);
  if (listed) return "choice";
  if (only !== undefined) return text(only);
  const types = [type ?? []].flat().map((one) => kinds[one] ?? one);

  return [...new Set([...types, ...anyOf.map((one) => kindOf(root, one))])].join(" or ");
}

function helpOf(root: Schema, schema: Schema): string {
  const { description, default: usual, type } = resolved(root, schema);
  const list = type === "boolean" ? [] : choices(root, schema);

  return [
    description === undefined ? "" : `${description}.`,
    list.length > 1 ? `One of ${list.join(", ")}.` : "",
    usual === undefined ? "" : `Default: ${text(usual)}.`,
  ]
    .filter((part) => part !== "")
    .join(" ");
}
