import { shortId, value as text } from "@/lib/format";

/** A line of two or more sweep files side by side: its place, and each file's value there. */
export interface SpecLine {
  path: string;
  values: string[];
  differs: boolean;
}

/** apart are the names of sweeps, in their order; of those with one name, each with the beginning of its id. */
export function apart(sweeps: { id: string; name: string }[]): string[] {
  const times = new Map<string, number>();
  for (const { name } of sweeps) times.set(name, (times.get(name) ?? 0) + 1);

  return sweeps.map(({ id, name }) => ((times.get(name) ?? 0) > 1 ? `${name} (${shortId(id)})` : name));
}

/** MISSING stands where a file has nothing. */
export const MISSING = "–";

/** specLines are all values of the files by their path, in the order in which they first appear. */
export function specLines(specs: unknown[]): SpecLine[] {
  const flat = specs.map((spec) => leaves(spec));
  const paths = [...new Set(flat.flatMap((one) => [...one.keys()]))];

  return paths.map((path) => {
    const there = flat.map((one) => one.get(path));
    const exact = there.map((leaf) => (leaf === undefined ? MISSING : JSON.stringify(leaf)));
    const plain = there.map((leaf) => (leaf === undefined ? MISSING : told(leaf)));
    const kinds = new Set(exact).size;

    return { path, values: new Set(plain).size < kinds ? exact : plain, differs: kinds > 1 }; // 1 and "1" look alike
  });
}

/** leaves are the values of a document that hold no others; a named thing is one, identified by name, not by place. */
function leaves(node: unknown, path = "", all = new Map<string, unknown>()): Map<string, unknown> {
  if (Array.isArray(node) && node.some((item) => typeof item === "object" && item !== null)) {
    node.forEach((item: unknown, i) => {
      const name = nameOf(item);
      if (name === undefined) leaves(item, `${path}[${i}]`, all);
      else all.set(`${path}[${name}]`, item);
    });
  } else if (!Array.isArray(node) && typeof node === "object" && node !== null && Object.keys(node).length > 0) {
    for (const [key, item] of Object.entries(node)) leaves(item, path === "" ? key : `${path}.${key}`, all);
  } else if (path !== "") all.set(path, node);

  return all;
}

/** told is a leaf as a user writes it. */
function told(leaf: unknown): string {
  if (nameOf(leaf) !== undefined) {
    const fields = Object.entries(leaf as object).filter(([key]) => key !== "name");

    return fields.map(([key, value]) => `${key}: ${told(value)}`).join("; ");
  }

  return Array.isArray(leaf) && leaf.length > 0 ? leaf.map(text).join(", ") : text(leaf);
}

function nameOf(item: unknown): string | undefined {
  return typeof item === "object" && item !== null && "name" in item && typeof item.name === "string"
    ? item.name
    : undefined;
}
