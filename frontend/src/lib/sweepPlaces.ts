import { isMap, isScalar, isSeq, parseDocument, type Pair } from "yaml";

export interface TextRange {
  from: number;
  to: number;
}

/** placeOf is where a problem is: at the line that its message names while the text cannot be read, else where its pointer leads. */
export function placeOf(text: string, { pointer, detail }: { pointer: string; detail: string }): TextRange {
  const [, line, column = "1"] = /^line (\d+)(?:, column (\d+))?: /.exec(detail) ?? [];
  if (pointer !== "" || line === undefined) return rangeOf(text, pointer);

  const lines = text.split("\n");
  const n = Math.min(Number(line), lines.length);
  const from = lines.slice(0, n - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const to = from + (lines[n - 1]?.length ?? 0);

  return { from: Math.min(from + Number(column) - 1, to), to };
}

/** rangeOf is the range of a JSON pointer's target in a text, or of the nearest existing value above it. */
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
      const pair: Pair | undefined = node.items.findLast((one) => isScalar(one.key) && String(one.key.value) === step);
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
