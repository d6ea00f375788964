import { QueryClient } from "@tanstack/react-query";
import { ApiError, isAway } from "@/api/errors";
import { isPaused } from "@/lib/paused";

const TRIES = 2;
const PATIENCE = 60; // seconds: a person sees the error before a longer wait ends
const AGAIN = 10_000; // ms between two tries of a failed read

/** How often data with running or waiting things is read again: most of its changes send no event. */
export const WHILE_RUNNING = 4000; // ms

/** How often other data is read again, for changes without an event and without a trial: another user's, or a machine that falls silent. */
export const EACH_MINUTE = 60_000; // ms

/** A list is read again page by page: one of many pages so slowly that it asks for one page a second. */
export const PER_PAGE = 1000; // ms

/**
 * newQueryClient keeps data until the event stream says that it changed. It repeats
 * a read when the server does not answer, or asks to come later: no event says that
 * a failed read would now succeed.
 *
 * A browser that says it is offline still reaches a server on this machine: reads
 * go on, and a change fails at once in place of being sent hours later.
 */
export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: "always",
        staleTime: Infinity,
        refetchOnWindowFocus: false,
        refetchInterval: again,
        retry: (tries, error) => tries < TRIES && later(error),
        retryDelay,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

/** Reading is the part of a query that again looks at. */
export interface Reading {
  state: { status: string; error: unknown; data: unknown };
}

/**
 * again is after how many ms a failed query is repeated; false = it succeeded, or the server
 * says that it never will. Each refetchInterval begins with it. While updates are paused the
 * page stays as it is, and then all queries go on.
 */
export function again({ state: { status, error, data } }: Reading): number | false {
  if (status !== "error" || !passes(error) || (data !== undefined && isPaused())) return false;
  const pages = (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0;

  return Math.max(AGAIN, error.retryAfter * 1000, pages * PER_PAGE);
}

/** every is a refetchInterval: WHILE_RUNNING while the data shows something running, else idle. */
export function every(query: Reading, runs: boolean | undefined, idle: number | false = false): number | false {
  return again(query) || (runs === true ? WHILE_RUNNING : idle);
}

/** passes says that the same request may succeed later. */
export function passes(error: unknown): error is ApiError {
  return isAway(error) || (error instanceof ApiError && error.status === 429);
}

/** later says that the same request may succeed while a person waits. */
function later(error: unknown): boolean {
  return passes(error) && error.retryAfter <= PATIENCE;
}

/** retryDelay is in milliseconds: the server's Retry-After, or twice as long each time. */
export function retryDelay(tries: number, error: unknown): number {
  const asked = error instanceof ApiError ? error.retryAfter * 1000 : 0;

  return Math.max(asked, Math.min(1000 * 2 ** tries, 30_000));
}
