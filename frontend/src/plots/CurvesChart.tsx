import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { decimal } from "@/lib/format";
import { palette } from "@/plots/palette";

const HEIGHT = 280;

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
    const grid = { stroke: p.line, width: 1 };
    const axis = { stroke: p.ink, grid, ticks: grid, font: "12px system-ui" };
    const order = [...lines.filter((line) => !line.strong), ...lines.filter((line) => line.strong)];
    const data = uPlot.join(order.map((line): uPlot.AlignedData => [line.steps, line.values]));
    const plot = new uPlot(
      {
        width: target.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false } },
        legend: { show: false },
        cursor: { drag: { x: true, y: false } },
        series: [
          { label: "step" },
          ...order.map((line) => ({
            label: `Trial ${line.trial}`,
            stroke: line.strong ? p.pick : p.run,
            alpha: line.strong ? 1 : 0.45,
            width: line.strong ? 2 : 1,
            spanGaps: true,
            points: { show: line.steps.length < 3 },
          })),
        ],
        axes: [axis, { ...axis, size: 64, values: (_: uPlot, ticks: number[]) => ticks.map(decimal) }],
      },
      data,
      target,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT }));
    observer.observe(target);

    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [lines, dark]);

  return (
    <div
      ref={box}
      role="img"
      aria-label={`${metric} by step of ${lines.length} trials; the table has the last values`}
    />
  );
}
