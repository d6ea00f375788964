import { duration, range } from "@/lib/format";
import type { ExpectedStart } from "@/services/hosts";

const reasons: Record<NonNullable<ExpectedStart["unknown"]>, string> = {
  sweep_inactive: "Not known: its sweep takes no trials now",
  put_off: "Not known while it is put off",
  blocked: "Not known: no room is in its way, but what is said at Why",
  nothing_fits: "Never: no machine could hold it, even an empty one",
  host_away: "Not known: only machines or GPUs could hold it that take nothing now",
  no_end_helps: "Not known: it waits for no trial to end, but for what is said at Why",
  duration_unknown: "Not known until 3 trials of what runs or comes before it have ended",
  far_back: "Not known: too many come before it",
  far_ahead: "Not known: it is too far ahead",
  just_asked: "Known in a few seconds",
};

/** startText says in how long an attempt is expected to start, or why nobody knows. */
export function startText({ min_seconds: min, max_seconds: max, unknown }: ExpectedStart): string {
  if (unknown !== undefined) return reasons[unknown];
  if (min === undefined || max === undefined) return "Not known";
  if (max < 1) return "Now";

  return min < 1 ? `Within ${duration(max)}` : `In ${range(min, max)}`;
}
