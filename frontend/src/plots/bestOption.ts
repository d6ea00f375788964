import type { EChartsCoreOption } from "echarts/core";
import { trialAxis, valueAxis } from "@/plots/options";
import type { Palette } from "@/plots/palette";

export interface BestLine {
  name: string;
  best: [number, number][];
}

/** Colours of lines with a dash each, so that they differ without colour, too. */
const dashes = ["solid", "dashed", "dotted", [12, 4, 2, 4]];
const dashNames = ["", "dashed", "dotted", "dash and dot"];

/** One dash each two lines: colours begin again after the sixth, when dashes have come to the fourth. */
const dashOf = (i: number) => Math.floor(i / 2) % dashes.length;

/** dashName says how the line at a place is dashed; "" = it is not. */
export function dashName(i: number): string {
  return dashNames[dashOf(i)] ?? "";
}

/** bestColors are the colours of the lines, in their order; they repeat after the sixth. */
export function bestColors(p: Palette): string[] {
  return [p.run, p.pick, p.done, p.warn, p.bad, p.wait];
}

/** The best value so far of several sweeps over each other. */
export function bestOption(lines: BestLine[], metric: string, p: Palette): EChartsCoreOption {
  const colors = bestColors(p);

  return {
    grid: { left: 8, right: 16, top: 28, bottom: 28, containLabel: true },
    xAxis: trialAxis(p),
    yAxis: valueAxis(p, metric),
    series: lines.map((line, i) => ({
      name: line.name,
      type: "line",
      step: "end",
      showSymbol: line.best.length === 1,
      data: line.best,
      color: colors[i % colors.length],
      lineStyle: { width: 2, type: dashes[dashOf(i)] },
    })),
  };
}
