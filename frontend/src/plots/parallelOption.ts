import type { EChartsCoreOption } from "echarts/core";
import { place, type Axis } from "@/lib/overview/axes";
import type { Scored } from "@/lib/overview/sample";
import { whole } from "@/plots/axisMarks";
import { axisLook, clipped, decades, type Chosen } from "@/plots/options";
import type { Palette } from "@/plots/palette";

export function parallelOption(
  axes: Axis[],
  lines: Scored[],
  metric: string,
  chosen: Chosen,
  p: Palette,
): EChartsCoreOption {
  const good = Math.max(1, Math.floor(lines.length / 10)); // the best come last
  const line = (trial: Scored, i: number) => {
    const strong = i >= lines.length - good;
    const on = chosen.has(trial.number);

    return {
      value: [...axes.map((axis) => place(axis, trial) ?? "-"), trial.value],
      lineStyle: on
        ? { color: p.pick, width: 2, opacity: 0.95 }
        : {
            color: strong ? p.run : p.wait,
            width: strong ? 1.5 : 1,
            opacity: (strong ? 0.75 : 0.3) * (chosen.size > 0 ? 0.4 : 1),
          },
    };
  };
  const order =
    chosen.size === 0
      ? lines
      : [...lines.filter((one) => !chosen.has(one.number)), ...lines.filter((one) => chosen.has(one.number))];
  const rank = new Map(lines.map((one, i) => [one.number, i]));
  const plain = axisLook(p);
  const look = {
    ...plain,
    z: 10,
    axisLabel: { ...plain.axisLabel, fontSize: 11, textBorderColor: p.surface, textBorderWidth: 3 },
  };

  return {
    parallel: {
      left: 40,
      right: 90, // marks of the metric
      top: 36,
      bottom: 20,
      parallelAxisDefault: {
        nameLocation: "end",
        nameGap: 12,
        nameTextStyle: { color: p.ink, fontSize: 12 },
        nameTruncate: { maxWidth: 110 },
        areaSelectStyle: { color: p.run, borderColor: p.run, opacity: 0.2, width: 16 },
      },
    },
    parallelAxis: [
      ...axes.map((axis, i) => ({
        id: String(i),
        dim: i,
        name: axis.name,
        type: axis.log ? "log" : "value",
        scale: true,
        ...look,
        ...decades(look, axis.log),
        ...(axis.labels && {
          min: -0.2,
          max: axis.labels.length - 0.8,
          interval: 1,
          axisLabel: {
            ...look.axisLabel,
            customValues: axis.labels.map((_, at) => at),
            formatter: (at: number) => clipped(axis.labels?.[at] ?? ""),
          },
          axisTick: { ...look.axisTick, customValues: axis.labels.map((_, at) => at) },
        }),
      })),
      {
        id: String(axes.length),
        dim: axes.length,
        name: metric,
        type: "value",
        scale: true,
        ...look,
        axisLabel: { ...look.axisLabel, formatter: whole },
      },
    ],
    series: [
      {
        type: "parallel",
        smooth: false,
        inactiveOpacity: 0.04,
        activeOpacity: 0.9,
        progressive: 500,
        data: order.map((one) => line(one, rank.get(one.number) ?? 0)),
      },
    ],
  };
}
