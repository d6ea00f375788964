import { hashKey, queryOptions, type QueryKey } from "@tanstack/react-query";
import { answer } from "@/api/client";
import {
  getSweepInsight,
  getSweepReport,
  listCurves,
  listMetricNames,
  listStages,
  listSweepAttempts,
  listTrials,
  type Attempt,
  type Trial,
  type TrialSort,
} from "@/api/generated";
import { ended } from "@/lib/states";
import { bestFirst } from "@/lib/trials";
import { again, WHILE_RUNNING, type Reading } from "@/services/query";
import type { Sweep } from "@/services/sweeps";

export type { Curve, Stage, SweepInsight as Insight } from "@/api/generated";

const PAGE = 500;
const MOST_PAGES = 20; // 10,000 trials, or attempts

export interface Part<Row> {
  rows: Row[];
  /** total is how many there are; undefined = not known, but more than rows has. */
  total: number | undefined;
}

/**
 * Charts of a whole sweep take many pages, so that they are not read again at
 * each change: every WHILE_RUNNING while the sweep goes on, less often when they take
 * more pages, and once at its end.
 */
function paced(sweep: Sweep, live: boolean) {
  const over = ended(sweep.state);
  const every = live && !over && Math.min(60_000, Math.max(WHILE_RUNNING, (2000 * sweep.counts.total) / PAGE));

  return { over, refetchInterval: (query: Reading) => again(query) || every };
}

/**
 * until shows the last data of the running sweep until the data of its end has
 * arrived: the keys differ in their last part alone. The user's selection stays.
 */
function until(key: QueryKey) {
  return <T>(before: T | undefined, query: { queryKey: QueryKey } | undefined): T | undefined =>
    query && hashKey(query.queryKey.slice(0, -1)) === hashKey(key.slice(0, -1)) ? before : undefined;
}

/** Of more trials than can be read, the best by value and the newest are. */
export function chartTrialsQuery(sweep: Sweep, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "trials", over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: async ({ signal }): Promise<Part<Trial>> => {
      const all = await trialPages(sweep.id, "number", MOST_PAGES, signal);
      if (all.rows.length >= (all.total ?? 0)) return all;

      const best = await trialPages(sweep.id, bestFirst(sweep.objective?.goal), MOST_PAGES - 4, signal);
      const newest = await trialPages(sweep.id, "-number", 4, signal);
      const rows = new Map([...best.rows, ...newest.rows].map((trial) => [trial.number, trial]));

      return { rows: [...rows.values()].sort((a, b) => a.number - b.number), total: all.total };
    },
    refetchInterval,
  });
}

async function trialPages(id: string, sort: TrialSort, most: number, signal: AbortSignal): Promise<Part<Trial>> {
  const rows: Trial[] = [];
  let total = 0;
  let cursor: string | undefined;
  for (let i = 0; i < most; i++) {
    const page = await answer(
      listTrials({ path: { id }, query: { limit: PAGE, sort, ...(cursor !== undefined && { cursor }) }, signal }),
    );
    rows.push(...page.data);
    if (i === 0) total = page.total;
    cursor = page.next_cursor;
    // The first page says that they are too many: the caller reads the best instead.
    if (cursor === undefined || (sort === "number" && total > most * PAGE)) break;
  }

  return { rows, total: Math.max(total, rows.length) };
}

export function chartAttemptsQuery(sweep: Sweep, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "attempts", over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: async ({ signal }): Promise<Part<Attempt>> => {
      const rows: Attempt[] = [];
      let cursor: string | undefined;
      for (let i = 0; i < MOST_PAGES; i++) {
        const page = await answer(
          listSweepAttempts({
            path: { id: sweep.id },
            query: { limit: PAGE, ...(cursor !== undefined && { cursor }) },
            signal,
          }),
        );
        rows.push(...page.data);
        cursor = page.next_cursor;
        if (cursor === undefined) return { rows, total: rows.length };
      }

      return { rows, total: undefined };
    },
    refetchInterval,
  });
}

export function metricNamesQuery(sweep: Sweep, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "metric-names", over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: ({ signal }) => answer(listMetricNames({ path: { id: sweep.id }, signal })),
    refetchInterval,
  });
}

export function insightQuery(sweep: Sweep, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "insight", over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: ({ signal }) => answer(getSweepInsight({ path: { id: sweep.id }, signal })),
    refetchInterval,
  });
}

/** stagesQuery reads the outputs that a sweep's trials use, and what its succeeded trials saved by them. */
export function stagesQuery(sweep: Sweep, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "stages", over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: async ({ signal }) => {
      const [page, report] = await Promise.all([
        answer(listStages({ query: { sweep: sweep.id, limit: PAGE }, signal })),
        answer(getSweepReport({ path: { id: sweep.id }, query: { limit: 1 }, signal })),
      ]);

      return { stages: page.data, part: page.next_cursor !== undefined, report: report.stages ?? [] };
    },
    refetchInterval,
  });
}

/** trials are numbers and ranges; "" = the 50 best and 50 that run. */
export function curvesQuery(sweep: Sweep, name: string, trials: string, live: boolean) {
  const { over, refetchInterval } = paced(sweep, live);
  const queryKey = ["overview", sweep.id, "curves", name, trials, over];

  return queryOptions({
    queryKey,
    placeholderData: until(queryKey),
    queryFn: ({ signal }) =>
      answer(
        listCurves({
          path: { id: sweep.id },
          query: { name, max_points: 200, ...(trials !== "" && { trials }) },
          signal,
        }),
      ),
    enabled: name !== "",
    refetchInterval,
  });
}
