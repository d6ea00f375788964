import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import {
  cancelSweep,
  cloneSweep,
  createSweep,
  deleteSweep,
  getSweep,
  getSweepReport,
  listSweeps,
  pauseSweep,
  previewSweep,
  rerunFailedTrials,
  resumeSweep,
  stopSweep,
  updateSweep,
  validateSweep,
  type SweepFile,
  type SweepState,
} from "@/api/generated";

export type { Objective, Preview, ProblemItem, Sweep, SweepReport, SweepState, Validation } from "@/api/generated";

const PAGE = 100;

export function sweepsQuery(states: SweepState[]) {
  return infiniteQueryOptions({
    queryKey: ["sweeps", { states }],
    queryFn: ({ pageParam, signal }) =>
      answer(
        listSweeps({
          query: {
            limit: PAGE,
            ...(states.length > 0 && { state: states }),
            ...(pageParam !== "" && { cursor: pageParam }),
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });
}

export function sweepQuery(id: string) {
  return queryOptions({
    queryKey: ["sweep", id],
    queryFn: ({ signal }) => answer(getSweep({ path: { id }, signal })),
  });
}

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

export function clone(id: string, key: string) {
  return answer(cloneSweep({ path: { id }, body: {}, headers: { "Idempotency-Key": key } }));
}

export function rerunFailed(id: string, key: string) {
  return answer(rerunFailedTrials({ path: { id }, body: {}, headers: { "Idempotency-Key": key } }));
}

export function remove(id: string) {
  return answer(deleteSweep({ path: { id } }));
}
