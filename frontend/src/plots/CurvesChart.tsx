import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { decimal, grouped } from "@/lib/format";
import { linePlot } from "@/plots/linePlot";

export interface Line {
  trial: number;
  /** name, where it is not the number of the trial. */
  name?: string;
  steps: number[];
  /** values are drawn. */
  values: number[];
  /** reported are the values before smoothing. */
  reported: number[];
  color: string;
  /** dash of the line; empty = none. */
  dash: number[];
  /** strong lines are drawn on top, and others pale. */
  strong: boolean;
}

interface Props {
  lines: Line[];
  metric: string;
  log: boolean;
  dark: boolean;
}

/** Curves of one metric, a line for each trial. */
export default function CurvesChart({ lines, metric, log, dark }: Props) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = box.current;
    if (!target || lines.length === 0) return;

    const order = [...lines.filter((line) => !line.strong), ...lines.filter((line) => line.strong)];
    const data = uPlot.join(order.map((line): uPlot.AlignedData => [line.steps, line.values]));

    return linePlot(target, data, dark, {
      height: 300,
      legend: { show: false },
      x: "step",
      y: "number",
      names: { x: "step", y: metric },
      log,
      lines: order.map((line) => ({
        label: `Trial ${line.trial}`,
        stroke: line.color,
        alpha: line.strong ? 1 : 0.45,
        width: line.strong ? 2 : 1,
        dash: line.dash,
        spanGaps: true,
        points: { show: line.steps.length < 3 },
      })),
      tip: (i, step) => tipOf(order[i], step),
    });
  }, [lines, metric, log, dark]);

  return (
    <div
      ref={box}
      role="img"
      aria-label={`${metric} by step of ${lines.length} trials; the table has the last values`}
    />
  );
}

/** tipOf is such as "trial 5: 0.98 at step 6". */
function tipOf(line: Line | undefined, step: number): string {
  const i = line?.steps.indexOf(step) ?? -1;
  const value = line?.reported[i];
  if (line === undefined || value === undefined) return "";
  const drawn = line.values[i];
  const smooth = drawn === undefined || drawn === value ? "" : `, smoothed ${decimal(drawn)}`;

  return `${line.name ?? `trial ${line.trial}`}: ${decimal(value)} at step ${grouped(step)}${smooth}`;
}
