import { count, grouped } from "@/lib/format";
import { breaksConstraint } from "@/lib/objectives";
import { trialLooks, failureText } from "@/lib/states";
import type { Objective } from "@/services/sweeps";
import type { Trial, TrialSort } from "@/services/trials";

/** parameterNames are the parameters of any of the trials, in the order in which they first appear. */
export function parameterNames(trials: Trial[]): string[] {
  const names = new Set<string>();
  for (const trial of trials) for (const name of Object.keys(trial.params)) names.add(name);

  return [...names];
}

/** constants are the parameters that have one value in all of several trials. */
export function constants(trials: Trial[]): Set<string> {
  const same = (name: string) => new Set(trials.map((trial) => JSON.stringify(trial.params[name]))).size === 1;

  return new Set(trials.length < 2 ? [] : parameterNames(trials).filter(same));
}

/** bestFirst is the order in which the best trial comes first. */
export function bestFirst(goal: Objective["goal"] | undefined): TrialSort {
  return goal === "minimize" ? "value" : "-value";
}

/** turned is the order after a press on a column: the given one first, then the other way round. */
export function turned<Sort extends string>(now: Sort, first: Sort): Sort {
  if (now !== first) return first;

  return (first.startsWith("-") ? first.slice(1) : `-${first}`) as Sort;
}

/** ordered says to a reader of the page how a column is sorted. */
export function ordered(now: string, key: string): "ascending" | "descending" | "none" {
  return now === key ? "ascending" : now === `-${key}` ? "descending" : "none";
}

/** matching says how many of a list there are; the server counts up to a limit. */
export function matching(total: number, most: number, one: string): string {
  return total >= most ? `${grouped(most)} ${one}s or more` : count(total, one);
}

/** originText says who chose the values of a trial, and how much it knew. */
export function originText({ by, ended = 0, prior = 0, open = 0 }: Trial["origin"]): string {
  if (ended + prior === 0) return by;
  const earlier = prior === 0 ? "" : `, ${grouped(prior)} of earlier sweeps`;

  return `${by}, which knew ${count(ended, "ended trial")}${earlier} and ${grouped(open)} without a result`;
}

/** trialNote is one line with the reason why a trial failed, waits, or is not ranked. */
export function trialNote(trial: Trial): string {
  const waiting = trial.waiting?.[0];
  if (waiting) return waiting.reason;
  if (trial.state === "running" || (trial.state === "succeeded" && !breaksConstraint(trial))) return "";

  return trial.message ?? failureText(trial.failure_kind);
}

export { trialLooks };
