import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import {
  cancelSweep,
  cloneSweep,
  createSweep,
  deleteSweep,
  getSweep,
  getSweepReport,
  getSweepSchema,
  listFailures,
  listSweeps,
  pauseSweep,
  previewSweep,
  rerunFailedTrials,
  resumeSweep,
  stopSweep,
  updateSweep,
  validateSweep,
  type Preview,
  type PreviewDevice,
  type PreviewHost,
  type ProblemItem,
  type SweepFile,
  type SweepSort,
  type SweepState,
} from "@/api/generated";
import type { Schema } from "@/lib/sweepSchema";
import { again } from "@/services/query";

export type {
  Constraint,
  Objective,
  Preview,
  PreviewDevice,
  PreviewHost,
  ProblemItem,
  Sweep,
  SweepReport,
  SweepSort,
  SweepState,
  Validation,
} from "@/api/generated";

/** How full a memory gets, of a machine or of a GPU. */
export type PreviewFill = Pick<
  PreviewHost & Partial<PreviewDevice>,
  | "memory_bytes"
  | "memory_headroom_bytes"
  | "memory_used_by_others_bytes"
  | "memory_reserved_bytes"
  | "memory_sweep_bytes"
>;

const PAGE = 100;

/** The server counts a list up to this number; the count then reads as "so many or more". */
export const MOST_SWEEPS = 10_000;

/** The filter of a list of sweeps; absent fields do not matter. */
export interface SweepFilter {
  states?: SweepState[];
  name?: string;
  by?: string;
  sort?: SweepSort;
}

export function sweepsQuery({ states = [], name = "", by = "", sort = "-created_at" }: SweepFilter) {
  return infiniteQueryOptions({
    queryKey: ["sweeps", { states, name, by, sort }],
    queryFn: ({ pageParam, signal }) =>
      answer(
        listSweeps({
          query: {
            limit: PAGE,
            sort,
            ...(states.length > 0 && { state: states }),
            ...(name !== "" && { name }),
            ...(by !== "" && { created_by: by }),
            ...(pageParam !== "" && { cursor: pageParam }),
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
    placeholderData: keepPreviousData,
  });
}

export function sweepQuery(id: string) {
  return queryOptions({
    queryKey: ["sweep", id],
    queryFn: ({ signal }) => answer(getSweep({ path: { id }, signal })),
  });
}

/** failuresQuery says why so many trials of a sweep failed; it is read again when more have. */
export function failuresQuery(id: string, failed: number) {
  return queryOptions({
    queryKey: ["overview", id, "failures", failed], // not after each event
    queryFn: ({ signal }) => answer(listFailures({ path: { id }, signal })),
    enabled: failed > 0,
    placeholderData: keepPreviousData,
  });
}

const ETA_EVERY = 15_000; // ms

/**
 * etaQuery says how long a sweep still takes, which no list says. It is read now
 * and then: after each event of each sweep in a list would be too often.
 */
export function etaQuery(id: string, live: boolean) {
  return queryOptions({
    queryKey: ["eta", id],
    queryFn: async ({ signal }) => (await answer(getSweep({ path: { id }, signal }))).eta ?? null,
    refetchInterval: (query) => again(query) || (live && ETA_EVERY),
  });
}

/** sweepTextQuery is a sweep as JSON text: numbers are in it as the server wrote them. */
export function sweepTextQuery(id: string) {
  return queryOptions({
    queryKey: ["sweep", id, "text"],
    queryFn: async ({ signal }) => {
      const text: unknown = await answer(getSweep({ path: { id }, parseAs: "text", signal }));

      return text as string;
    },
  });
}

/** schemaQuery is the JSON Schema of a sweep file. It changes with the server alone. */
export const schemaQuery = queryOptions({
  queryKey: ["sweep-schema"],
  queryFn: async ({ signal }) => (await answer(getSweepSchema({ signal }))) as Schema,
});

export function reportQuery(id: string) {
  return queryOptions({
    queryKey: ["sweep", id, "report"],
    queryFn: ({ signal }) => answer(getSweepReport({ path: { id }, query: { limit: 1 }, signal })),
  });
}

// A sweep file is sent as its author wrote it, so that problems point into that text.
const asYAML = { "Content-Type": "application/yaml" };
const asItIs = (body: unknown) => body as string;
const fileOf = (text: string) => text as unknown as SweepFile;

export function validate(text: string, signal?: AbortSignal) {
  return answer(
    validateSweep({ body: fileOf(text), bodySerializer: asItIs, headers: asYAML, ...(signal && { signal }) }),
  );
}

export function preview(text: string, signal?: AbortSignal) {
  return answer(
    previewSweep({ body: fileOf(text), bodySerializer: asItIs, headers: asYAML, ...(signal && { signal }) }),
  );
}

/** lacksImage is a preview's warning that the image is missing, or that no machine could look at it. */
export function lacksImage({ warnings }: Preview): ProblemItem | undefined {
  return warnings.find((item) => item.code.startsWith("W_IMAGE"));
}

const IMAGE_EVERY = 15_000; // ms, while a person may be building the image that is missing
const IMAGE_TIMES = 20; // so often since the warning came, five minutes: its registry may be asked each time
const IMAGE_LATER = 60_000; // ms, then, as a build may take longer,
const MOST_IMAGE_TIMES = 30; // until it was asked so often: with PREVIEW_EVERY behind it, 100 times in 6 hours

/**
 * Each preview asks a machine for the image, and the image's registry when no machine has it.
 * Docker Hub lets an address ask 100 times in 6 hours; this is 72 times.
 */
const PREVIEW_EVERY = 300_000; // ms

/** How many answers came before the first one without the image, by query. */
const before = new WeakMap<object, number>();

/** imageEvery is after how many ms a preview without its image is repeated; undefined = as one with it. */
function imageEvery(query: { state: { data: Preview | undefined; dataUpdateCount: number } }): number | undefined {
  const { data, dataUpdateCount } = query.state;
  const code = data && lacksImage(data)?.code;
  if (code === undefined) {
    before.delete(query);

    return undefined;
  }
  const since = before.get(query) ?? dataUpdateCount - 1;
  before.set(query, since);
  if (dataUpdateCount - since < IMAGE_TIMES) return IMAGE_EVERY;
  if (dataUpdateCount - since >= MOST_IMAGE_TIMES) return undefined;

  return code === "W_IMAGE_MISSING" || code === "W_IMAGE_UNKNOWN" ? IMAGE_LATER : undefined;
}

/** previewQuery predicts a sweep on the present machines. No event announces a change of that. */
export function previewQuery(text: string, live: boolean) {
  return queryOptions({
    queryKey: ["preview", text],
    queryFn: ({ signal }) => preview(text, signal),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    refetchOnWindowFocus: live,
    refetchInterval: (query) => {
      const every = imageEvery(query) ?? PREVIEW_EVERY;

      return again(query) || (live && every);
    },
  });
}

export function submit(text: string, key: string) {
  return answer(
    createSweep({ body: fileOf(text), bodySerializer: asItIs, headers: { ...asYAML, "Idempotency-Key": key } }),
  );
}

export function pause(id: string) {
  return answer(pauseSweep({ path: { id } }));
}

export function resume(id: string) {
  return answer(resumeSweep({ path: { id } }));
}

export function stop(id: string) {
  return answer(stopSweep({ path: { id } }));
}

export function cancel(id: string) {
  return answer(cancelSweep({ path: { id } }));
}

export function setParallel(id: string, maxParallel: number) {
  return answer(updateSweep({ path: { id }, body: { max_parallel: maxParallel } }));
}

export function setNote(id: string, note: string, was: string) {
  return answer(updateSweep({ path: { id }, body: { note, note_was: was } }));
}

export function clone(id: string, key: string) {
  return answer(cloneSweep({ path: { id }, body: {}, headers: { "Idempotency-Key": key } }));
}

export function rerunFailed(id: string, key: string) {
  return answer(rerunFailedTrials({ path: { id }, body: {}, headers: { "Idempotency-Key": key } }));
}

export function remove(id: string) {
  return answer(deleteSweep({ path: { id } }));
}
