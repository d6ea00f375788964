import type { EChartsCoreOption } from "echarts/core";
import { lineLook } from "@/plots/lineLooks";
import { trialAxis, valueAxis } from "@/plots/options";
import type { Palette } from "@/plots/palette";

export interface BestLine {
  name: string;
  best: [number, number][];
}

/** The best value so far of several sweeps over each other. */
export function bestOption(lines: BestLine[], metric: string, p: Palette): EChartsCoreOption {
  return {
    grid: { left: 8, right: 16, top: 28, bottom: 28, containLabel: true },
    xAxis: trialAxis(p),
    yAxis: valueAxis(p, metric),
    series: lines.map((line, i) => {
      const { color, dash } = lineLook(p, i);

      return {
        name: line.name,
        type: "line",
        step: "end",
        showSymbol: line.best.length === 1,
        data: line.best,
        color,
        lineStyle: { width: 2, type: dash.length > 0 ? dash : "solid" },
      };
    }),
  };
}
