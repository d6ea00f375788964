import type { Metric } from "@/services/trials";

export interface Series {
  name: string;
  steps: number[];
  values: (number | null)[];
}

/** series puts points in lines by metric; a value that is not finite leaves a gap. */
export function series(metrics: Metric[]): Series[] {
  const lines = new Map<string, Series>();
  for (const metric of metrics) {
    const line = lines.get(metric.name) ?? { name: metric.name, steps: [], values: [] };
    lines.set(metric.name, line);
    line.steps.push(metric.step);
    line.values.push(metric.value ?? null);
  }

  return [...lines.values()];
}

/** table puts metrics side by side, one row a step. */
export function table(lines: Series[]): { step: number; values: (number | null | undefined)[] }[] {
  const rows = new Map<number, (number | null | undefined)[]>();
  lines.forEach((line, column) =>
    line.steps.forEach((step, i) => {
      const row = rows.get(step) ?? lines.map(() => undefined);
      row[column] = line.values[i];
      rows.set(step, row);
    }),
  );

  return [...rows].sort(([a], [b]) => a - b).map(([step, values]) => ({ step, values }));
}
