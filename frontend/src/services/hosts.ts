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
import { again, EACH_MINUTE, every, PER_PAGE, WHILE_RUNNING } from "@/services/query";

export type { Device, Host, KeptHost, Lease, QueuedAttempt, UsagePoint } from "@/api/generated";

/** A silent machine sends no event: an idle page, too, reads it again from time to time. */
export function hostsQuery(live: boolean) {
  return queryOptions({
    queryKey: ["hosts"],
    queryFn: ({ signal }) => answer(listHosts({ signal })),
    refetchInterval: (query) =>
      every(query, live && query.state.data?.data.some((host) => host.attempts > 0), live && EACH_MINUTE),
  });
}

/** One answer of the API has at most this many leases. */
export const LEASES_PAGE = 500;
const MOST_PAGES = 10;

/** The current leases on each host and GPU: at most 5,000. */
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
    refetchInterval: (query) => again(query) || (live && leasesEvery(query.state.data ?? [])),
  });
}

/** leasesEvery is after how many ms leases are read again: one page a second where these are many. */
function leasesEvery({ length }: Lease[]): number | false {
  return length > 0 && Math.max(WHILE_RUNNING, leasesRest(length));
}

/** leasesRest is how long this many leases are kept, in ms, whatever changes. */
export function leasesRest(leases: number): number {
  return leases > LEASES_PAGE ? PER_PAGE * Math.ceil(leases / LEASES_PAGE) : 0;
}

/** The first waiting attempts. */
export function queueQuery(live: boolean) {
  return queryOptions({
    queryKey: ["queue"],
    queryFn: ({ signal }) => answer(listQueue({ query: { limit: 100 }, signal })),
    refetchInterval: (query) => every(query, live && (query.state.data?.data.length ?? 0) > 0),
  });
}

/** How full a machine and its GPUs were in the last hours, 168 at most: one point of each minute. */
export function usageQuery(id: string, hours: number, live: boolean) {
  return queryOptions({
    queryKey: ["usage", id, hours],
    queryFn: ({ signal }) => answer(getHostUsage({ path: { id }, query: { hours }, signal })),
    refetchInterval: (query) => again(query) || (live && EACH_MINUTE),
    // No event announces a point: a reopened page reads it again.
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
