import type { EChartsCoreOption } from "echarts/core";
import { duration } from "@/lib/format";
import type { BarLook, Lanes } from "@/lib/overview/lanes";
import { axisLook, tooltip } from "@/plots/options";
import type { Palette } from "@/plots/palette";

const least = 26; // px, so that few rows can be read
const most = 520;

export function timelineHeight(rows: number): number {
  return Math.min(most, Math.max(110, 70 + rows * least));
}

export function barColor(look: BarLook, p: Palette): string {
  return { done: p.done, running: p.run, starting: p.wait, failed: p.bad, repeated: p.warn, canceled: p.wait }[look];
}

interface RenderApi {
  value: (dimension: number) => number;
  coord: (at: [number, number]) => [number, number];
  size: (of: [number, number]) => [number, number];
  style: () => Record<string, unknown>;
}

/** Time from left to right, a row for each attempt that ran at once, rows of one host or GPU together. */
export function timelineOption({ bars, rows }: Lanes, chosen: ReadonlySet<number>, p: Palette): EChartsCoreOption {
  return {
    grid: { left: 8, right: 16, top: 8, bottom: 52, containLabel: true },
    tooltip: tooltip(p),
    dataZoom: [
      {
        type: "slider",
        height: 16,
        bottom: 8,
        filterMode: "weakFilter",
        borderColor: p.line,
        textStyle: { color: p.ink },
      },
    ],
    xAxis: { type: "time", ...axisLook(p) },
    yAxis: {
      type: "category",
      inverse: true,
      data: rows.map((_, i) => String(i)),
      ...axisLook(p),
      axisTick: { show: false },
      axisLabel: {
        color: p.ink,
        fontSize: 12,
        interval: 0,
        width: 110,
        overflow: "truncate",
        formatter: (i: string) => rows[Number(i)] ?? "",
      },
    },
    series: [
      {
        type: "custom",
        encode: { x: [1, 2], y: 0 },
        renderItem: (_: unknown, api: RenderApi) => {
          const [x0, y] = api.coord([api.value(1), api.value(0)]);
          const [x1] = api.coord([api.value(2), api.value(0)]);
          const [, height] = api.size([0, 1]);
          const thick = Math.max(2, height * 0.8);

          return {
            type: "rect",
            shape: { x: x0, y: y - thick / 2, width: Math.max(2, x1 - x0), height: thick, r: Math.min(3, thick / 4) },
            style: api.style(),
          };
        },
        data: bars.map((bar) => ({
          trial: bar.trial,
          text: `Trial ${bar.trial}, attempt ${bar.attempt}, ${duration((bar.to - bar.from) / 1000)} on ${bar.place}: ${bar.text}`,
          value: [bar.row, bar.from, bar.to],
          itemStyle: {
            color: chosen.has(bar.trial) ? p.pick : barColor(bar.look, p),
            opacity: chosen.size > 0 && !chosen.has(bar.trial) ? 0.35 : 1,
          },
        })),
      },
    ],
  };
}
