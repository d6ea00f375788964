import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import { decimal } from "@/lib/format";
import type { Series } from "@/lib/metrics";

const HEIGHT = 200;

/** One metric over its steps. The table beside it says the same in text. */
export default function MetricChart({ line, dark }: { line: Series; dark: boolean }) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = box.current;
    if (!target) return;

    const ink = dark ? "#a3adb5" : "#5c6770";
    const grid = { stroke: dark ? "#39424a" : "#e3e7ea", width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
    const plot = new uPlot(
      {
        width: target.clientWidth,
        height: HEIGHT,
        scales: { x: { time: false } },
        cursor: { drag: { x: true, y: false } },
        series: [
          { label: "step" },
          {
            label: line.name,
            stroke: dark ? "#45b5c4" : "#0b6a78",
            width: 2,
            points: { show: line.steps.length < 60 },
            value: (_, v: number | null) => (v === null ? "–" : decimal(v)),
          },
        ],
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(decimal) }],
      },
      [line.steps, line.values],
      target,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height: HEIGHT }));
    observer.observe(target);

    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [line, dark]);

  return (
    <div ref={box} role="img" aria-label={`${line.name} over ${line.steps.length} steps; the table has the values`} />
  );
}
