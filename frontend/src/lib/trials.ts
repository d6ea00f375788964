import { trialLooks, failureText } from "@/lib/states";
import type { Objective } from "@/services/sweeps";
import type { Trial } from "@/services/trials";
import type { TrialSort } from "@/routes/search";

/** parameterNames are those that any of the trials has, in the order in which they first appear. */
export function parameterNames(trials: Trial[]): string[] {
  const names = new Set<string>();
  for (const trial of trials) for (const name of Object.keys(trial.params)) names.add(name);

  return [...names];
}

/** sorted puts trials in order. Without a value a trial is last: a failed one is never the best. */
export function sorted(trials: Trial[], sort: TrialSort, goal: Objective["goal"] | undefined): Trial[] {
  if (sort === "number") return trials;
  if (sort === "-number") return trials.toReversed();

  const sign = goal === "minimize" ? 1 : -1;

  return trials.toSorted((a, b) => {
    if (a.value === undefined || b.value === undefined) {
      return Number(a.value === undefined) - Number(b.value === undefined) || a.number - b.number;
    }

    return sign * (a.value - b.value) || a.number - b.number;
  });
}

/** trialNote is the one line that says why a trial failed or waits. */
export function trialNote(trial: Trial): string {
  const waiting = trial.waiting?.[0];
  if (waiting) return waiting.reason;
  if (trial.state === "succeeded" || trial.state === "running") return "";

  return trial.message ?? failureText(trial.failure_kind);
}

export { trialLooks };
