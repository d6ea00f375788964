import type { IconName } from "@/components/Icon";
import type { SweepState } from "@/services/sweeps";
import type { TrialState } from "@/services/trials";

export interface StateLook {
  text: string;
  icon: IconName;
  color: string;
}

const done = "var(--done)";
const run = "var(--run)";
const wait = "var(--wait)";
const bad = "var(--bad)";
const warn = "var(--warn)";

export const sweepLooks: Record<SweepState, StateLook> = {
  pending: { text: "Starting", icon: "clock", color: wait },
  running: { text: "Running", icon: "play", color: run },
  paused: { text: "Paused", icon: "pause", color: warn },
  stopping: { text: "Stopping", icon: "square", color: warn },
  canceling: { text: "Canceling", icon: "slash", color: warn },
  succeeded: { text: "Succeeded", icon: "check", color: done },
  failed: { text: "Failed", icon: "cross", color: bad },
  stopped: { text: "Stopped", icon: "square", color: wait },
  canceled: { text: "Canceled", icon: "slash", color: wait },
};

export const trialLooks: Record<TrialState, StateLook> = {
  pending: { text: "Pending", icon: "dashed", color: wait },
  probing: { text: "Probing", icon: "search", color: run },
  waiting: { text: "Waiting", icon: "clock", color: wait },
  running: { text: "Running", icon: "play", color: run },
  succeeded: { text: "Succeeded", icon: "check", color: done },
  failed: { text: "Failed", icon: "cross", color: bad },
  infeasible: { text: "Needs too much memory", icon: "warning", color: warn },
  canceled: { text: "Canceled", icon: "slash", color: wait },
  pruned: { text: "Stopped early", icon: "square", color: wait },
};

export const sweepStates = Object.keys(sweepLooks) as SweepState[];
export const trialStates = Object.keys(trialLooks) as TrialState[];

/** ended says that a sweep will not change any more. */
export function ended(state: SweepState): boolean {
  return state === "succeeded" || state === "failed" || state === "stopped" || state === "canceled";
}

/** settled says that a trial will not change any more. */
export function settled(state: TrialState): boolean {
  return ["succeeded", "failed", "infeasible", "canceled", "pruned"].includes(state);
}

/** How an attempt ended, in words; docs/state_machine.md defines the kinds. */
const failures: Record<string, string> = {
  ok: "Finished",
  host_oom: "Out of memory on its machine",
  device_oom: "Out of memory on its GPU",
  device_busy: "Its GPU was full before it began",
  too_big: "Too large for every machine",
  user_error: "The program ended with an error",
  bad_config: "These values cannot work",
  crashed: "The program crashed",
  killed: "Killed from outside",
  preempted: "Stopped, can be resumed",
  timed_out: "Ran out of time",
  no_result: "Reported no objective",
  not_finite: "The objective is not a finite number",
  no_device: "Did not use its GPU",
  image_missing: "The image is missing on its machine",
  bad_command: "The command cannot be run",
  neighbour_fault: "A neighbour on its GPU failed",
  infra: "The machine, Docker or Berth failed",
  canceled: "Canceled",
  pruned: "Stopped early",
  log_flood: "Printed too much",
  disk_quota: "Wrote too many files",
  short_probe: "Short probe, to measure memory",
};

export function failureText(kind: string | undefined): string {
  if (kind === undefined || kind === "") return "";

  return failures[kind] ?? kind.replaceAll("_", " ");
}
