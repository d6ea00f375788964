import { value as text } from "@/lib/format";
import type { Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

/** An axis of a parameter. Only choices, drawn at 0, 1, 2, …, have labels. */
export interface Axis {
  name: string;
  log: boolean;
  labels?: string[];
}

/**
 * axesOf makes an axis for each parameter that has two values or more. Numbers
 * are drawn as numbers, on a log scale where the sweep file says so and all are
 * above zero; anything else as choices, in the order of the file.
 */
export function axesOf(trials: Trial[], spec: Sweep["spec"]): Axis[] {
  const seen = new Map<string, Map<string, unknown>>();
  for (const trial of trials) {
    for (const [name, v] of Object.entries(trial.params)) {
      const values = seen.get(name) ?? new Map<string, unknown>();
      seen.set(name, values.set(text(v), v));
    }
  }

  const described = new Map(parameters(spec).map((one) => [one.name, one]));

  return [...seen]
    .filter(([, values]) => values.size > 1)
    .map(([name, values]) => axis(name, values, described.get(name)));
}

function axis(name: string, values: Map<string, unknown>, described: Described | undefined): Axis {
  const raw = [...values.values()];
  const numbers = raw.filter((v) => typeof v === "number");
  if (numbers.length === raw.length && described?.choices === undefined) {
    return { name, log: described?.log === true && numbers.every((n) => n > 0) };
  }

  const order = (described?.choices ?? []).map(text).filter((label) => values.has(label));
  const others = [...values.keys()].filter((label) => !order.includes(label));

  return { name, log: false, labels: [...order, ...others.sort()] };
}

/** place is where the value of a trial is on an axis; undefined = the trial does not have the parameter. */
export function place(axis: Axis, trial: Trial): number | undefined {
  const v = trial.params[axis.name];
  if (v === undefined) return undefined;
  if (axis.labels) {
    const at = axis.labels.indexOf(text(v));

    return at < 0 ? undefined : at;
  }

  return typeof v === "number" ? v : undefined;
}

interface Described {
  name: string;
  log: boolean;
  choices?: unknown[];
}

/** parameters reads a sweep file's parameters with their defaults filled in. */
function parameters(spec: Sweep["spec"]): Described[] {
  const list: unknown = spec?.parameters;
  if (!Array.isArray(list)) return [];

  return list.flatMap((one: unknown): Described[] => {
    if (typeof one !== "object" || one === null || !("name" in one) || typeof one.name !== "string") return [];
    const choices = "values" in one && Array.isArray(one.values) ? (one.values as unknown[]) : undefined;

    return [{ name: one.name, log: "log" in one && one.log === true, ...(choices && { choices }) }];
  });
}

/** inside says whether a trial is in every range that a person drew on axes. */
export function inside(axes: Axis[], ranges: Map<number, [number, number][]>, trial: Trial, value: number): boolean {
  for (const [i, list] of ranges) {
    if (list.length === 0) continue;
    const axis = axes[i];
    const at = axis ? place(axis, trial) : value;
    if (at === undefined || !list.some(([a, b]) => at >= Math.min(a, b) && at <= Math.max(a, b))) return false;
  }

  return true;
}
