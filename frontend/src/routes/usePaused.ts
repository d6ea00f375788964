import { useRouteContext } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";

/** usePaused says that the person paused live updates: nothing is read again by itself. */
export function usePaused(): boolean {
  const { live } = useRouteContext({ from: "__root__" });

  return useSyncExternalStore(live.subscribe, live.current) === "paused";
}
