import { queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { listHosts, removeHost, updateDevice, updateHost } from "@/api/generated";

export type { Device, Host } from "@/api/generated";

/** That a host falls silent is no event, and what others use of its memory is none: hosts are asked again slowly. */
const SLOWLY = 30_000; // ms

export function hostsQuery(live: boolean) {
  return queryOptions({
    queryKey: ["hosts"],
    queryFn: ({ signal }) => answer(listHosts({ signal })),
    refetchInterval: live ? SLOWLY : false,
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
