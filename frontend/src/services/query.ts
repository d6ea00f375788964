import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/errors";

const TRIES = 2;
const PATIENCE = 60; // seconds: a person sees the error before a longer wait ends

/**
 * newQueryClient keeps what was read until the event stream says that it
 * changed. A server that does not answer, or asks to come later, is asked again.
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
        retry: (tries, error) => tries < TRIES && later(error),
        retryDelay,
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
}

/** later says that the same request may succeed later. */
function later(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.retryAfter > PATIENCE) return false;

  return error.status === 0 || error.status === 429 || error.status >= 500;
}

/** retryDelay is in milliseconds: what the server asks for, or twice as long each time. */
export function retryDelay(tries: number, error: unknown): number {
  const asked = error instanceof ApiError ? error.retryAfter * 1000 : 0;

  return Math.max(asked, Math.min(1000 * 2 ** tries, 30_000));
}
