import { ranked, type Goal, type Scored } from "@/lib/overview/sample";
import { value as text } from "@/lib/format";

/** With fewer trials chance alone makes parameters look important. */
export const LEAST_TRIALS = 20;

/** The best quarter is compared with all; PED-ANOVA's gamma. Its authors' 0.1 would leave 2 of 20 trials. */
const BEST = 0.25;

/** Numbers are put in this many groups of about the same size; with fewer distinct ones, each is a group. */
const GROUPS = 4;

/** Sums of parts of 1 are off by less than this; a score of it would be a share of nothing. */
const ROUNDING = 1e-9;

export interface Importance {
  name: string;
  /** score is the divergence, less the mean divergence by chance; not below 0. */
  score: number;
  /** share of the scores of all parameters, 0 to 1. */
  share: number;
  /** trials are the trials with the parameter. With fewer than LEAST_TRIALS the score is 0. */
  trials: number;
}

/**
 * importances say how much the values of each parameter differ between the best
 * quarter of trials and all of them: PED-ANOVA (Watanabe et al., IJCAI 2023),
 * with groups of values in place of its kernel densities. For groups with parts a
 * of all trials and b of the best, the Pearson divergence is the sum of
 * (b - a)^2 / a. Trials that are as good as the last of the best m share the places
 * that are left, each with the same weight. When weights with a sum of squares s are
 * dealt to n trials by chance, the mean over k groups is (k - 1) / m^2 *
 * (n * s - m^2) / (n - 1), which is taken off. A parameter that only some trials
 * have is scored within those. Most important first.
 */
export function importances(trials: Scored[], goal: Goal, names: string[]): Importance[] {
  const order = ranked(trials, goal);
  if (order.length < 2) return [];

  const scores = names.map((name) => {
    const have = order.filter((trial) => trial.params[name] !== undefined);

    return { name, score: have.length < LEAST_TRIALS ? 0 : scoreOf(have, name), trials: have.length };
  });
  const sum = scores.reduce((total, one) => total + one.score, 0);

  return scores
    .map((one) => ({ ...one, share: sum === 0 ? 0 : one.score / sum }))
    .sort((a, b) => b.share - a.share || a.name.localeCompare(b.name));
}

/** scoreOf is the score of one parameter over trials that have it, the best first. */
function scoreOf(order: Scored[], name: string): number {
  const n = order.length;
  const m = Math.max(1, Math.round(BEST * n));
  const last = order[m - 1]?.value;
  const better = order.findIndex((trial) => trial.value === last);
  const tied = order.filter((trial) => trial.value === last).length;
  const shared = (m - better) / tied; // the weight of each that is as good as the last of the best

  const all = new Map<string, number>();
  const best = new Map<string, number>();
  grouping(order.map((trial) => trial.params[name])).forEach((group, i) => {
    const weight = i < better ? 1 : i < better + tied ? shared : 0;
    all.set(group, (all.get(group) ?? 0) + 1);
    best.set(group, (best.get(group) ?? 0) + weight);
  });
  let divergence = 0;
  for (const [group, times] of all) {
    const a = times / n;
    divergence += ((best.get(group) ?? 0) / m - a) ** 2 / a;
  }
  const squares = better + tied * shared ** 2;
  const chance = ((all.size - 1) / m ** 2) * ((n * squares - m ** 2) / (n - 1));
  const score = divergence - chance;

  return score < ROUNDING ? 0 : score;
}

/** grouping names the group of each value. Equal values are in one group; a missing one is a group of its own. */
export function grouping(values: unknown[]): string[] {
  const numbers = values.filter((v): v is number => typeof v === "number").sort((a, b) => a - b);
  const numeric = values.every((v) => v === undefined || typeof v === "number");
  if (!numeric || new Set(numbers).size <= GROUPS) return values.map((v) => (v === undefined ? "" : text(v)));

  const below = new Map<number, number>();
  numbers.forEach((v, i) => {
    if (!below.has(v)) below.set(v, i);
  });

  return values.map((v) =>
    typeof v === "number" ? String(Math.floor((GROUPS * (below.get(v) ?? 0)) / numbers.length)) : "",
  );
}
