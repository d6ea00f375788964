import type { EChartsCoreOption } from "echarts/core";
import { axisLook } from "@/plots/options";
import type { Palette } from "@/plots/palette";

export interface BestLine {
  name: string;
  best: [number, number][];
}

/** Colours of lines with a dash each, so that they differ without colour, too. */
const dashes = ["solid", "dashed", "dotted", [12, 4, 2, 4]];

/** The best value so far of several sweeps over each other. */
export function bestOption(lines: BestLine[], metric: string, p: Palette): EChartsCoreOption {
  const colors = [p.run, p.pick, p.done, p.warn, p.bad, p.wait];

  return {
    grid: { left: 8, right: 16, top: 28, bottom: 28, containLabel: true },
    xAxis: { type: "value", name: "trial", nameLocation: "middle", nameGap: 26, min: 0, ...axisLook(p) },
    yAxis: {
      type: "value",
      name: metric,
      scale: true,
      ...axisLook(p),
      nameTextStyle: { color: p.ink, fontSize: 12, align: "left" },
    },
    series: lines.map((line, i) => ({
      name: line.name,
      type: "line",
      step: "end",
      showSymbol: false,
      data: line.best,
      endLabel: { show: true, formatter: "{a}", color: p.ink, width: 120, overflow: "truncate" },
      color: colors[i % colors.length],
      lineStyle: { width: 2, type: dashes[Math.floor(i / 2) % dashes.length] },
    })),
  };
}
