import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "@/api/errors";

/**
 * newQueryClient keeps what was read until the event stream says that it
 * changed. Only a server that does not answer is asked again by itself.
 */
export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: Infinity,
        refetchOnWindowFocus: false,
        retry: (tries, error) => tries < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      },
      mutations: { retry: false },
    },
  });
}
