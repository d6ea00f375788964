import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { linePlot } from "@/plots/linePlot";
import { palette } from "@/plots/palette";

export interface Line {
  trial: number;
  steps: number[];
  values: number[];
  /** strong lines are drawn in colour, on top. */
  strong: boolean;
}

interface Props {
  lines: Line[];
  metric: string;
  dark: boolean;
}

/** Curves of one metric, a line for each trial. */
export default function CurvesChart({ lines, metric, dark }: Props) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = box.current;
    if (!target || lines.length === 0) return;

    const p = palette(dark);
    const order = [...lines.filter((line) => !line.strong), ...lines.filter((line) => line.strong)];
    const data = uPlot.join(order.map((line): uPlot.AlignedData => [line.steps, line.values]));

    return linePlot(target, data, dark, {
      height: 280,
      legend: { show: false },
      x: "step",
      y: "number",
      lines: order.map((line) => ({
        label: `Trial ${line.trial}`,
        stroke: line.strong ? p.pick : p.run,
        alpha: line.strong ? 1 : 0.45,
        width: line.strong ? 2 : 1,
        spanGaps: true,
        points: { show: line.steps.length < 3 },
      })),
    });
  }, [lines, dark]);

  return (
    <div
      ref={box}
      role="img"
      aria-label={`${metric} by step of ${lines.length} trials; the table has the last values`}
    />
  );
}
