import type { Query, QueryClient, QueryKey } from "@tanstack/react-query";
import type { Change } from "@/services/stream";

const AT_MOST_EVERY = 250; // ms: four times a second

/** What changed: the numbers of trials by sweep. An undefined number is the sweep itself. */
export type Changed = Map<string, Set<number | undefined>>;

/**
 * Invalidator collects what changed and marks it as stale at most four times a
 * second. A query that is being read may have seen the state before the change,
 * so it is marked once it has been read.
 */
export class Invalidator {
  private changed: Changed = new Map();
  private machines = false;
  private readonly again = new Set<string>(); // hashes of queries that were being read
  private all = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;

  constructor(private readonly queries: QueryClient) {}

  change(change: Change): void {
    if (change.sweep_id !== undefined) {
      const trials = this.changed.get(change.sweep_id) ?? new Set();
      this.changed.set(change.sweep_id, trials.add(change.trial));
    } else if (/^(host|device)\./.test(change.kind)) this.machines = true;
    else this.all = true;
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
    const { all, machines, changed } = this;
    const again = new Set(this.again);
    this.all = false;
    this.machines = false;
    this.changed = new Map();
    this.again.clear();

    const due = new Set<Query>();
    for (const query of this.queries.getQueryCache().getAll()) {
      const stale = all || (machines && ofMachines(query.queryKey)) || touched(query.queryKey, changed);
      if (!stale && !again.has(query.queryHash)) continue;
      if (query.state.fetchStatus === "idle") due.add(query);
      else this.again.add(query.queryHash);
    }
    if (due.size > 0) {
      void this.queries.invalidateQueries({ predicate: (query) => due.has(query) }, { cancelRefetch: false });
    }
    if (this.again.size > 0) this.schedule();
  }
}

/** ofMachines says whether a query shows hosts and GPUs, or what is on them. */
function ofMachines([kind]: QueryKey): boolean {
  return kind === "hosts" || kind === "leases" || kind === "queue" || kind === "health";
}

/**
 * touched says whether a query shows something of the changed sweeps. The list
 * shows all of them; what else begins with "sweep" has an id, which may be the
 * beginning of one when a person typed it. Metrics and memory of an attempt change
 * with their own trial alone.
 */
export function touched(key: QueryKey, changed: Changed): boolean {
  const [kind, id, part, number] = key;
  if (changed.size === 0) return false;
  if (kind === "sweeps" || kind === "probes" || kind === "probe" || ofMachines(key)) return true;
  if (kind !== "sweep" || typeof id !== "string") return false;

  return [...changed].some(
    ([full, trials]) =>
      full.startsWith(id) &&
      ((part !== "metrics" && part !== "memory") || trials.has(undefined) || trials.has(number as number)),
  );
}
