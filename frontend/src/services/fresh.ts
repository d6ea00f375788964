import type { Query } from "@tanstack/react-query";
import type { Hint } from "@/api/generated";

export type { Hint } from "@/api/generated";

/** What hints name is also read without one, as a hint may be lost; so is what nothing names. */
export const NOW_AND_THEN = 60_000; // ms

/** However many hints come, they let a query be read again at most so often. */
const AT_MOST_EVERY = 2000; // ms

/** The values of a trial that has reported so many take a while to read and to draw. */
const MANY_POINTS = 5000;
const MANY_EVERY = 5000; // ms

/** A longer list is left to events: every page of it is read again. */
const FEW_PAGES = 2;

/** Fresh is what hints named since it was last emptied. */
export class Fresh {
  private readonly metrics = new Set<string>(); // attempts
  private readonly memory = new Set<string>(); // attempts
  private readonly waiting = new Map<string, Set<number>>(); // trials by sweep
  private hosts = false;
  private everything = false;

  add({ kind, subject, sweep_id, trial }: Hint): void {
    if (kind === "metrics") this.metrics.add(subject);
    else if (kind === "memory") this.memory.add(subject);
    else if (kind === "host.silent" || kind === "host.back") this.hosts = true;
    else if (sweep_id !== undefined && trial !== undefined) {
      this.waiting.set(sweep_id, (this.waiting.get(sweep_id) ?? new Set()).add(trial));
    }
  }

  /** missed says that hints may have been lost: all that they can name may have changed. */
  missed(): void {
    this.everything = true;
  }

  /** names says whether a query shows something that was named. */
  names({ queryKey, state }: Query): boolean {
    const [kind, id, part, number, attempt, ...rest] = queryKey;
    if (kind === "hosts" || kind === "health") return this.hosts || (this.everything && kind === "hosts");
    if (kind === "queue") return this.hosts || this.everything || this.waiting.size > 0;
    if (kind !== "sweep" || typeof id !== "string" || rest.length > 0) return false;
    if (part === "metrics") return this.everything || this.metrics.has(attempt as string);
    if (part === "memory") return this.everything || this.memory.has(attempt as string);
    if (part === "trial" && attempt === undefined) return this.waits(id, number as number);

    return part === "trials" && pagesOf(state.data) <= FEW_PAGES && this.waits(id);
  }

  /** waits says whether something that waits was named of a sweep, or of one trial; a person may have typed a part of the id. */
  private waits(id: string, number?: number): boolean {
    if (this.everything) return true;

    return [...this.waiting].some(
      ([sweep, trials]) => sweep.startsWith(id) && (number === undefined || trials.has(number)),
    );
  }
}

function pagesOf(data: unknown): number {
  const { pages } = (data ?? {}) as { pages?: unknown[] };

  return pages?.length ?? 0;
}

/** rest is how long a query is kept, in ms, before a hint lets it be read again. */
export function rest({ queryKey, state }: Query): number {
  if (queryKey[2] !== "metrics") return AT_MOST_EVERY;
  const { data } = (state.data ?? {}) as { data?: unknown[] };

  return (data?.length ?? 0) > MANY_POINTS ? MANY_EVERY : AT_MOST_EVERY;
}
