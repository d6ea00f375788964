import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { Change } from "@/services/stream";

const AT_MOST_EVERY = 250; // ms: four times a second

/**
 * Invalidator collects what changed and marks it as stale at most four times a
 * second. A query that is being read is not read again at once.
 */
export class Invalidator {
  private readonly sweeps = new Set<string>();
  private all = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;

  constructor(private readonly queries: QueryClient) {}

  change(change: Change): void {
    if (change.sweep_id === undefined) this.all = true;
    else this.sweeps.add(change.sweep_id);
    this.schedule();
  }

  reset(): void {
    this.all = true;
    this.schedule();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.last + AT_MOST_EVERY - Date.now()));
  }

  private flush(): void {
    this.timer = undefined;
    this.last = Date.now();
    const { all, sweeps } = this;
    const changed = new Set(sweeps);
    this.all = false;
    sweeps.clear();

    void this.queries.invalidateQueries(
      { predicate: (query) => all || touched(query.queryKey, changed) },
      { cancelRefetch: false },
    );
  }
}

/**
 * touched says whether a query shows something of the changed sweeps. The list
 * shows all of them; what else begins with "sweep" has an id, which may be the
 * beginning of one when a person typed it.
 */
export function touched(key: QueryKey, changed: ReadonlySet<string>): boolean {
  const [kind, id] = key;
  if (kind === "sweeps" || kind === "hosts" || kind === "probes" || kind === "probe") return true;
  if (kind !== "sweep" || typeof id !== "string") return false;

  return [...changed].some((full) => full.startsWith(id));
}
