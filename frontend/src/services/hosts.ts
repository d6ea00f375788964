import { queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import {
  getHostUsage,
  listHosts,
  listLeases,
  listQueue,
  removeHost,
  updateDevice,
  updateHost,
  type Lease,
} from "@/api/generated";
import { NOW_AND_THEN } from "@/services/fresh";
import { again } from "@/services/query";

export type { Device, Host, KeptHost, Lease, QueuedAttempt, UsagePoint } from "@/api/generated";

/** What others use of a host's memory, and what is measured of attempts there, is neither an event nor worth reading at each hint. */
const SLOWLY = 30_000; // ms

export function hostsQuery(live: boolean) {
  return queryOptions({
    queryKey: ["hosts"],
    queryFn: ({ signal }) => answer(listHosts({ signal })),
    refetchInterval: (query) => again(query) || (live && SLOWLY),
  });
}

/** One answer of the API has at most this many leases. */
export const LEASES_PAGE = 500;
const MOST_PAGES = 10;

/** What holds a part of each host and GPU now: at most 5,000 leases. */
export function leasesQuery(live: boolean) {
  return queryOptions({
    queryKey: ["leases"],
    queryFn: async ({ signal }) => {
      const leases: Lease[] = [];
      let cursor: string | undefined;
      for (let i = 0; i < MOST_PAGES; i++) {
        const page = await answer(
          listLeases({ query: { limit: LEASES_PAGE, ...(cursor !== undefined && { cursor }) }, signal }),
        );
        leases.push(...page.data);
        cursor = page.next_cursor;
        if (cursor === undefined) break;
      }

      return leases;
    },
    refetchInterval: (query) => again(query) || (live && SLOWLY),
  });
}

/** The first of what waits for a place. */
export function queueQuery(live: boolean) {
  return queryOptions({
    queryKey: ["queue"],
    queryFn: ({ signal }) => answer(listQueue({ query: { limit: 100 }, signal })),
    refetchInterval: (query) => again(query) || (live && NOW_AND_THEN),
  });
}

/** A worker tells of its machine every 15 s, and of each minute one point is kept. */
const EACH_MINUTE = 60_000; // ms

/** How full a machine and its GPUs were in the last hours: 168 at most. */
export function usageQuery(id: string, hours: number, live: boolean) {
  return queryOptions({
    queryKey: ["usage", id, hours],
    queryFn: ({ signal }) => answer(getHostUsage({ path: { id }, query: { hours }, signal })),
    refetchInterval: (query) => again(query) || (live && EACH_MINUTE),
    // No event tells of a point: what was closed and is opened again is read again.
    ...(live && { staleTime: EACH_MINUTE }),
  });
}

export function drain(id: string) {
  return answer(updateHost({ path: { id }, body: { state: "draining" } }));
}

export function makeReady(id: string) {
  return answer(updateHost({ path: { id }, body: { state: "ready" } }));
}

export function cordon(id: string, reason: string) {
  return answer(updateDevice({ path: { id }, body: { state: "cordoned", ...(reason !== "" && { reason }) } }));
}

export function uncordon(id: string) {
  return answer(updateDevice({ path: { id }, body: { state: "ready" } }));
}

export function removeMachine(id: string) {
  return answer(removeHost({ path: { id } }));
}
