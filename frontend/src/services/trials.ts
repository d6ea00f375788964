import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { getTrial, listMetrics, listTrialAttempts, listTrials, type TrialState } from "@/api/generated";

export type { Attempt, Metric, Rejection, Trial, TrialState } from "@/api/generated";

const PAGE = 500;

export function trialsQuery(sweepId: string, states: TrialState[]) {
  return infiniteQueryOptions({
    queryKey: ["sweep", sweepId, "trials", { states }],
    queryFn: ({ pageParam, signal }) =>
      answer(
        listTrials({
          path: { id: sweepId },
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

export function trialQuery(sweepId: string, number: number) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "trial", number],
    queryFn: ({ signal }) => answer(getTrial({ path: { id: sweepId, number }, signal })),
  });
}

export function attemptsQuery(sweepId: string, number: number) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "trial", number, "attempts"],
    queryFn: ({ signal }) => answer(listTrialAttempts({ path: { id: sweepId, number }, signal })),
  });
}

export function metricsQuery(sweepId: string, attemptId: string, live: boolean) {
  return queryOptions({
    queryKey: ["sweep", sweepId, "metrics", attemptId],
    queryFn: ({ signal }) => answer(listMetrics({ path: { id: attemptId }, query: { limit: 20_000 }, signal })),
    // No event says that an attempt reported a value, so a running one is asked again.
    refetchInterval: live ? 3000 : false,
  });
}
