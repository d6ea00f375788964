import { ranked, type Goal, type Scored } from "@/lib/overview/sample";
import { value as text } from "@/lib/format";

/** With fewer trials chance alone makes parameters look important. */
export const LEAST_TRIALS = 20;

/** The best quarter is compared with all; PED-ANOVA's gamma. Its authors' 0.1 would leave 2 of 20 trials. */
const BEST = 0.25;

/** Numbers are put in so many groups of about the same size; fewer distinct ones are groups of their own. */
const GROUPS = 4;

export interface Importance {
  name: string;
  /** score is the divergence, less what chance alone gives in the mean; not below 0. */
  score: number;
  /** share of the scores of all parameters, 0 to 1. */
  share: number;
}

/**
 * importances say how much the values of each parameter differ between the best
 * quarter of trials and all of them: PED-ANOVA (Watanabe et al., IJCAI 2023),
 * with groups of values in place of its kernel densities. For groups with parts a
 * of all trials and b of the best, the Pearson divergence is the sum of
 * (b - a)^2 / a. When m of n trials are drawn by chance, its mean over k groups
 * is (k - 1) / m * (n - m) / (n - 1), which is taken off. Most important first.
 */
export function importances(trials: Scored[], goal: Goal, names: string[]): Importance[] {
  const order = ranked(trials, goal);
  const n = order.length;
  const m = Math.max(1, Math.round(BEST * n));
  if (n < 2) return [];

  const scores = names.map((name) => {
    const groups = grouping(order.map((trial) => trial.params[name]));
    const all = new Map<string, number>();
    const best = new Map<string, number>();
    groups.forEach((group, i) => {
      all.set(group, (all.get(group) ?? 0) + 1);
      if (i < m) best.set(group, (best.get(group) ?? 0) + 1);
    });
    let divergence = 0;
    for (const [group, times] of all) {
      const a = times / n;
      divergence += ((best.get(group) ?? 0) / m - a) ** 2 / a;
    }
    const chance = (((all.size - 1) / m) * (n - m)) / (n - 1);

    return { name, score: Math.max(0, divergence - chance) };
  });
  const sum = scores.reduce((total, one) => total + one.score, 0);

  return scores
    .map((one) => ({ ...one, share: sum === 0 ? 0 : one.score / sum }))
    .sort((a, b) => b.share - a.share || a.name.localeCompare(b.name));
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
