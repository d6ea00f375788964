import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { forgetProbe, getProbe, listProbes } from "@/api/generated";

export type { Diagnosis, Footprint, Probe } from "@/api/generated";

/** Events tell of sweeps, not of probes that a person forgets: a page that is opened reads them. */
export const probesQuery = infiniteQueryOptions({
  queryKey: ["probes"],
  queryFn: ({ pageParam, signal }) =>
    answer(listProbes({ query: { limit: 100, ...(pageParam !== "" && { cursor: pageParam }) }, signal })),
  initialPageParam: "",
  getNextPageParam: (page) => page.next_cursor,
  staleTime: 0,
});

export function probeQuery(key: string) {
  return queryOptions({
    queryKey: ["probe", key],
    queryFn: ({ signal }) => answer(getProbe({ path: { id: key }, signal })),
    staleTime: 0,
  });
}

export function forget(key: string) {
  return answer(forgetProbe({ path: { id: key } }));
}
