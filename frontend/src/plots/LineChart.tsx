import { useEffect, useRef } from "react";
import type { Unit } from "@/plots/axisMarks";
import { linePlot } from "@/plots/linePlot";
import { palette, type Palette } from "@/plots/palette";

export interface ChartLine {
  name: string;
  /** values are one for each x; null leaves a gap. */
  values: (number | null)[];
  color: keyof Palette;
  dashed?: boolean;
}

export interface LineChartProps {
  /** label names the content, and where the same is as text. */
  label: string;
  x: Unit;
  y: Unit;
  xs: number[];
  lines: ChartLine[];
  dark: boolean;
}

/** A few lines over their steps or over time. A table beside it says the same in text. */
export default function LineChart({ label, x, y, xs, lines, dark }: LineChartProps) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = box.current;
    if (!target) return;

    return linePlot(target, [xs, ...lines.map((line) => line.values)], dark, {
      height: 200,
      x,
      y,
      lines: lines.map((line) => ({
        label: line.name,
        stroke: palette(dark)[line.color],
        width: line.dashed ? 1.5 : 2,
        // A point alone between two gaps is always drawn.
        ...(line.dashed
          ? { dash: [6, 4], points: { show: false } }
          : x === "step" && xs.length < 60 && { points: { show: true } }),
      })),
    });
  }, [x, y, xs, lines, dark]);

  return <div ref={box} role="img" aria-label={label} />;
}
