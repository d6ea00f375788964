import type { Objective } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

/** More lines than this draw slowly and look the same (435 ms for 2,000 lines of 10 axes, on 2 cores). */
export const MOST_LINES = 2000;

export type Goal = Objective["goal"];

/** Scored is a trial with a value. */
export type Scored = Trial & { value: number };

export function scored(trials: Trial[]): Scored[] {
  return trials.filter((trial): trial is Scored => trial.value !== undefined && trial.state === "succeeded");
}

/** ranked puts the best first; ties are by number. */
export function ranked(trials: Scored[], goal: Goal): Scored[] {
  const sign = goal === "minimize" ? 1 : -1;

  return trials.toSorted((a, b) => sign * (a.value - b.value) || a.number - b.number);
}

/**
 * sample keeps the best half of the allowed number, and fills the rest with
 * every n-th of the others in the order of their values, so that bad ones are
 * seen too. Each call gives the same. The best come last, to be drawn on top.
 */
export function sample(trials: Scored[], goal: Goal, most = MOST_LINES): Scored[] {
  const order = ranked(trials, goal);
  if (order.length <= most) return order.reverse();

  const best = order.slice(0, Math.floor(most / 2));
  const rest = order.slice(best.length);
  const room = most - best.length;
  const spread = Array.from({ length: room }, (_, i) => rest[Math.floor((i * rest.length) / room)]);

  return [...best, ...spread.filter((one) => one !== undefined)].reverse();
}
