import { shortId, value as text } from "@/lib/format";

/** A line of two or more sweep files side by side: where it is, and what each has there. */
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
    const values = flat.map((one) => one.get(path) ?? MISSING);

    return { path, values, differs: new Set(values).size > 1 };
  });
}

/** leaves are the values of a document that hold no others; things with a name are told by it, not by their place. */
function leaves(node: unknown, path = "", all = new Map<string, string>()): Map<string, string> {
  if (Array.isArray(node)) {
    if (node.every((item) => typeof item !== "object" || item === null)) all.set(path, node.map(text).join(", "));
    else node.forEach((item: unknown, i) => leaves(item, `${path}[${nameOf(item) ?? i}]`, all));
  } else if (typeof node === "object" && node !== null) {
    for (const [key, item] of Object.entries(node)) leaves(item, path === "" ? key : `${path}.${key}`, all);
  } else if (path !== "") all.set(path, text(node));

  return all;
}

function nameOf(item: unknown): string | undefined {
  return typeof item === "object" && item !== null && "name" in item && typeof item.name === "string"
    ? item.name
    : undefined;
}
