import { ended } from "@/lib/states";
import type { Sweep } from "@/services/sweeps";

export type Control = "pause" | "resume" | "stop" | "cancel" | "parallel" | "clone" | "rerun" | "delete";

/** controlsOf are the user's commands for a sweep in its state. */
export function controlsOf(sweep: Sweep): Control[] {
  const { state, counts } = sweep;
  const controls: Control[] = [];

  if (state === "pending" || state === "running") controls.push("pause", "stop", "parallel");
  if (state === "paused") controls.push("resume", "stop", "parallel");
  if (!ended(state) && state !== "canceling") controls.push("cancel");
  controls.push("clone");
  if (ended(state) && counts.failed + counts.infeasible + counts.canceled > 0) controls.push("rerun");
  if (ended(state)) controls.push("delete");

  return controls;
}
