import type { InfiniteData, Query, QueryClient, QueryKey } from "@tanstack/react-query";
import { leasesRest } from "@/services/hosts";
import { PER_PAGE } from "@/services/query";
import type { Change } from "@/services/stream";

const AT_MOST_EVERY = 250; // ms: four times a second

const FEW_PAGES = 2; // of a list: these are read again at once

/** A report is computed from all attempts of a sweep. */
const REPORT = 5000; // ms

/** The health is measured at each call: the server asks its database, Temporal and its store. Every page shows it. */
const HEALTH = 15_000; // ms

/** The changes: the numbers of trials by sweep. An undefined number is the sweep itself. */
export type Changed = Map<string, Set<number | undefined>>;

/**
 * Invalidator collects what changed, and marks it as stale at most four times a second. A
 * query that is being read may have seen the state before the change, so it is marked once
 * it has been read, and one that takes much to read after a rest.
 */
export class Invalidator {
  private changed: Changed = new Map();
  private machines = false;
  private readonly again = new Set<string>(); // hashes of queries that were being read, or rest
  private all = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = -Infinity; // ms by performance.now(), which never goes back

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

  /** stop forgets the changes: a new start resets. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.take();
  }

  /** take returns the collected changes, and empties them. */
  private take() {
    const { all, machines, changed } = this;
    const taken = { all, machines, changed, again: new Set(this.again) };
    this.all = false;
    this.machines = false;
    this.changed = new Map();
    this.again.clear();

    return taken;
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.last + AT_MOST_EVERY - performance.now()));
  }

  private flush(): void {
    this.timer = undefined;
    this.last = performance.now();
    const now = Date.now();
    const { all, machines, changed, again } = this.take();

    const due = new Set<Query>();
    for (const query of this.queries.getQueryCache().getAll()) {
      const { queryKey, queryHash, state } = query;
      if (!all && !(machines && ofMachines(queryKey)) && !touched(queryKey, changed) && !again.has(queryHash)) continue;
      const read = Math.max(state.dataUpdatedAt, state.errorUpdatedAt);
      const ago = now - read; // less than nothing after the clock was set back
      const rests = ago >= 0 && ago < least(query);
      if (state.fetchStatus === "idle" && !rests) due.add(query);
      else this.again.add(queryHash);
    }
    if (due.size > 0) {
      void this.queries.invalidateQueries({ predicate: (query) => due.has(query) }, { cancelRefetch: false });
    }
    if (this.again.size > 0) this.schedule();
  }
}

/** least is how long a query's data is kept, in ms, before it is read again. */
function least({ queryKey, state }: Query): number {
  const [kind, , part] = queryKey;
  if (kind === "health") return HEALTH;
  if (kind === "sweep" && part === "report") return REPORT;
  if (kind === "leases") return leasesRest(((state.data ?? []) as unknown[]).length);
  const { pages } = (state.data ?? {}) as Partial<InfiniteData<unknown>>;

  return Array.isArray(pages) && pages.length > FEW_PAGES ? PER_PAGE * pages.length : 0;
}

/** ofMachines says whether a query shows hosts and GPUs, or their leases. */
function ofMachines([kind]: QueryKey): boolean {
  return kind === "hosts" || kind === "leases" || kind === "queue" || kind === "health";
}

const ofOneTrial = new Set<unknown>(["trial", "metrics", "memory", "files"]);

/**
 * touched says whether a query shows something of the changed sweeps. The list
 * shows all of them; what else begins with "sweep" has an id, which may be the
 * beginning of one when a person typed it. A trial, its metrics, memory and files change
 * with that trial alone, and the sweep file with the sweep itself.
 */
export function touched(key: QueryKey, changed: Changed): boolean {
  const [kind, id, part, number] = key;
  if (changed.size === 0) return false;
  if (kind === "sweeps" || kind === "probes" || kind === "probe" || ofMachines(key)) return true;
  if (kind !== "sweep" || typeof id !== "string") return false;

  return [...changed].some(
    ([full, trials]) =>
      full.startsWith(id) &&
      (trials.has(undefined) || (part !== "text" && (!ofOneTrial.has(part) || trials.has(number as number)))),
  );
}
