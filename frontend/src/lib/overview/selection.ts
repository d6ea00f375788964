/** The API reads the curves of at most this many trials at once, so no more are chosen. */
export const MOST_CHOSEN = 500;

/** readNumbers reads numbers and ranges such as 1,2,5-9, ascending; anything else is left out. */
export function readNumbers(text: string): number[] {
  const numbers = new Set<number>();
  for (const part of text.split(",")) {
    const [, from, to] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part.trim()) ?? [];
    if (from === undefined) continue;
    for (let n = Number(from); n <= Number(to ?? from) && numbers.size < MOST_CHOSEN; n++) numbers.add(n);
  }

  return [...numbers].sort((a, b) => a - b);
}

/** writeNumbers is the shortest such text. */
export function writeNumbers(numbers: Iterable<number>): string {
  const runs: [number, number][] = [];
  for (const n of [...new Set(numbers)].sort((a, b) => a - b).slice(0, MOST_CHOSEN)) {
    const last = runs.at(-1);
    if (last?.[1] === n - 1) last[1] = n;
    else runs.push([n, n]);
  }

  return runs.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}

/** toggled adds a number, or takes it away. To as many as can be chosen none is added. */
export function toggled(chosen: ReadonlySet<number>, n: number): number[] {
  if (chosen.has(n)) return [...chosen].filter((other) => other !== n);

  return chosen.size < MOST_CHOSEN ? [...chosen, n] : [...chosen];
}
