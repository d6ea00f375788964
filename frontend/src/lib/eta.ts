import { range } from "@/lib/format";
import type { Sweep } from "@/services/sweeps";

/**
 * etaText says how long a sweep still takes, or why that is not known; undefined
 * for one that starts, ends or has ended. The API leaves it out in three cases
 * (EstimateEnd in eta.go); the counts tell two of them.
 */
export function etaText({ state, eta, counts }: Sweep): string | undefined {
  if (state === "paused") return "not known while it is paused";
  if (state !== "running") return undefined;
  if (eta) return range(eta.min_seconds, eta.max_seconds);
  if (counts.planned === 0) return "not known: the number of trials is open";
  if (counts.running === 0) return "not known while no trial runs";

  return "not known until 3 trials have ended";
}
