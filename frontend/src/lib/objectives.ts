import { decimal } from "@/lib/format";
import type { Constraint, Objective, Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

/** objectivesOf are the first objective of a sweep, and the others in the order of its file. */
export function objectivesOf(objective: Objective | undefined): Objective[] {
  return objective ? [objective, ...(objective.further ?? [])] : [];
}

/** otherResults are the metrics of the other objectives and of the constraints, each once. */
export function otherResults({ objective, constraints = [] }: Pick<Sweep, "objective" | "constraints">): string[] {
  const names = [...objectivesOf(objective), ...constraints].map(({ metric }) => metric);

  return [...new Set(names)].filter((name) => name !== objective?.metric);
}

/** constraintText is such as "ms at least 1 and at most 20". */
export function constraintText({ metric, min, max }: Constraint): string {
  const bounds = [
    ...(min === undefined ? [] : [`at least ${decimal(min)}`]),
    ...(max === undefined ? [] : [`at most ${decimal(max)}`]),
  ];

  return `${metric} ${bounds.join(" and ")}`;
}

/** breaksConstraint reports whether a trial succeeded but is not ranked. */
export function breaksConstraint({ state, value, results }: Trial): boolean {
  return state === "succeeded" && value === undefined && results !== undefined;
}
