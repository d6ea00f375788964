import type { Goal } from "@/lib/overview/sample";
import type { Trial } from "@/services/trials";

export interface History {
  goal: Goal;
  done: [number, number][];
  /** best is the best value so far by number, as corners of a step line. */
  best: [number, number][];
  /** failed have no value: the number alone. */
  failed: number[];
  /** running trials with their last reported value: undefined = none yet, NaN = not finite. */
  running: [number, number | undefined][];
}

/** history is a search's results, trial by trial. A failed trial never counts as the best. */
export function history(trials: Trial[], goal: Goal): History {
  const all: History = { goal, done: [], best: [], failed: [], running: [] };
  const better = (a: number, b: number) => (goal === "minimize" ? a < b : a > b);
  let last = 0;
  for (const trial of trials.toSorted((a, b) => a.number - b.number)) {
    const { number, value, state } = trial;
    if (state === "succeeded" && value !== undefined) {
      all.done.push([number, value]);
      const best = all.best.at(-1);
      if (!best || better(value, best[1])) all.best.push([number, value]);
      last = number;
    } else if (state === "failed" || state === "infeasible") all.failed.push(number);
    // A trial that waits for its next attempt has started, too, and does not
    // run.
    else if ((state === "running" || state === "probing") && trial.started_at !== undefined) {
      const metric = trial.latest_attempt?.last_metric;
      all.running.push([number, metric && (metric.value ?? NaN)]);
    }
  }
  const best = all.best.at(-1);
  if (best && last > best[0]) all.best.push([last, best[1]]);

  return all;
}

/** within are the numbers of the points in a rectangle. */
export function within(points: [number, number, number][], x: [number, number], y: [number, number]): number[] {
  const [x0, x1] = [Math.min(...x), Math.max(...x)];
  const [y0, y1] = [Math.min(...y), Math.max(...y)];

  return points.filter(([px, py]) => px >= x0 && px <= x1 && py >= y0 && py <= y1).map(([, , number]) => number);
}
