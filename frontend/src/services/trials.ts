import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { apiUrl } from "@/api/config";
import {
  getAttemptMemory,
  getTrial,
  listFiles,
  listMetrics,
  listTrialAttempts,
  listTrials,
  updateTrial,
  type Attempt,
  type ExportFormat,
  type TrialSort,
  type TrialState,
} from "@/api/generated";
import { settled } from "@/lib/states";
import { every } from "@/services/query";

export type {
  Attempt,
  AttemptMemory,
  ExportFormat,
  FileList,
  LeftOutFile,
  MemoryPoint,
  Metric,
  Rejection,
  Rung,
  Trial,
  TrialSort,
  TrialState,
} from "@/api/generated";

const PAGE = 500;

/** live says that an attempt still reports: it has a place, and has not ended. */
export function live(attempt: Attempt): boolean {
  return attempt.state === "running" || attempt.state === "placed";
}

/** The server counts a list up to this number; the count then reads as "so many or more". */
export const MOST_TRIALS = 100_000;

/** The API tells the newest points of so many metrics at once. */
export const MOST_METRICS = 10;

/** The filter of a list of trials; absent fields do not matter. */
export interface TrialFilter {
  states?: TrialState[];
  min?: number | undefined;
  max?: number | undefined;
  stage?: string | undefined; // key whose output they use
  sort?: TrialSort;
}

/** matching is how lists and exports are asked for the trials of a filter. */
function matching({ states = [], min, max, stage }: TrialFilter) {
  return {
    ...(states.length > 0 && { state: states }),
    ...(min !== undefined && { value_min: min }),
    ...(max !== undefined && { value_max: max }),
    ...(stage !== undefined && { stage }),
  };
}

/** metrics are those whose newest points are shown beside the objective's, at most MOST_METRICS. */
export function trialsQuery(
  sweepId: string,
  { states = [], min, max, stage, sort = "number" }: TrialFilter,
  live = true,
  metrics: string[] = [],
) {
  return infiniteQueryOptions({
    queryKey: ["sweep", sweepId, "trials", { states, min, max, stage, sort, metrics }],
    queryFn: ({ pageParam, signal }) =>
      answer(
        listTrials({
          path: { id: sweepId },
          query: {
            limit: PAGE,
            sort,
            ...matching({ states, min, max, stage }),
            ...(metrics.length > 0 && { metric: metrics }),
            ...(pageParam !== undefined && { cursor: pageParam }),
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
    // No event says why trials wait, or what they report. Every page is read again, so a list of many is left to events.
    refetchInterval: (query) => {
      const pages = query.state.data?.pages ?? [];
      const changes = pages.some((page) => page.data.some((trial) => !settled(trial.state)));

      return every(query, live && changes && pages.length <= 2);
    },
  });
}

export function trialQuery(sweepId: string, number: number, live = true) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "trial", number],
    queryFn: ({ signal }) => answer(getTrial({ path: { id: sweepId, number }, signal })),
    refetchInterval: (query) => every(query, live && query.state.data?.state === "waiting"),
  });
}

export function attemptsQuery(sweepId: string, number: number) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "trial", number, "attempts"],
    queryFn: ({ signal }) => answer(listTrialAttempts({ path: { id: sweepId, number }, signal })),
  });
}

/** One answer has at most this many points, the first by name and step. */
export const MOST_POINTS = 20_000;

/** Events announce when an attempt starts and ends, not its reports. live = it reports. */
export function metricsQuery(sweepId: string, number: number, attemptId: string, live: boolean) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "metrics", number, attemptId],
    queryFn: ({ signal }) => answer(listMetrics({ path: { id: attemptId }, query: { limit: MOST_POINTS }, signal })),
    refetchInterval: (query) => every(query, live),
  });
}

/** An attempt's memory over time; live as above. */
export function memoryQuery(sweepId: string, number: number, attemptId: string, live: boolean) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "memory", number, attemptId],
    queryFn: ({ signal }) => answer(getAttemptMemory({ path: { id: attemptId }, signal })),
    refetchInterval: (query) => every(query, live),
  });
}

/** An attempt's files: the first page. No event announces stored files. */
export function filesQuery(sweepId: string, number: number, trialId: string, attempt: number, live: boolean) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "files", number, attempt],
    queryFn: ({ signal }) => answer(listFiles({ path: { id: trialId }, query: { attempt, limit: PAGE }, signal })),
    refetchInterval: (query) => every(query, live && query.state.data?.state === "pending"),
  });
}

/** fileAddress is where a file is downloaded. */
export function fileAddress(trialId: string, path: string, attempt: number): string {
  const escaped = path.split("/").map(encodeURIComponent).join("/");

  return apiUrl(`/trials/${trialId}/files/${escaped}?attempt=${attempt}`);
}

/** exportAddress is where the trials that a list shows are downloaded as one table. */
export function exportAddress(sweepId: string, filter: TrialFilter, format: ExportFormat): string {
  const asked = Object.entries({ format, ...matching(filter) });
  const query = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])); // states with commas between

  return apiUrl(`/sweeps/${sweepId}/export?${query}`);
}

export function setTrialNote(sweepId: string, number: number, note: string, was: string) {
  return answer(updateTrial({ path: { id: sweepId, number }, body: { note, note_was: was } }));
}
