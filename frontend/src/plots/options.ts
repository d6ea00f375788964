import type { EChartsCoreOption } from "echarts/core";
import { decimal } from "@/lib/format";
import { place, type Axis } from "@/lib/overview/axes";
import type { History } from "@/lib/overview/history";
import type { Scored } from "@/lib/overview/sample";
import type { Palette } from "@/plots/palette";

export type Chosen = ReadonlySet<number>;

interface Mark {
  trial: number;
  text: string;
}

export function tooltip(p: Palette) {
  return {
    trigger: "item",
    confine: true,
    backgroundColor: p.surface,
    borderColor: p.line,
    textStyle: { color: p.ink, fontSize: 12 },
    // As text: names and labels of a sweep file are no HTML.
    formatter: ({ data }: { data?: Partial<Mark> }) => {
      const box = document.createElement("div");
      box.textContent = data?.text ?? "";

      return box;
    },
  };
}

export function axisLook(p: Palette) {
  return {
    axisLine: { lineStyle: { color: p.line } },
    axisTick: { lineStyle: { color: p.line } },
    axisLabel: { color: p.ink, fontSize: 12, hideOverlap: true },
    splitLine: { lineStyle: { color: p.line } },
    nameTextStyle: { color: p.ink, fontSize: 12 },
  };
}

/** The settings of a log axis beside its look: by default ECharts writes its decades as 0.00009999999999999999. */
export function decades<Label extends object>({ axisLabel }: { axisLabel: Label }, log: boolean) {
  return log && { axisLabel: { ...axisLabel, formatter: decimal } };
}

/** The axis of trials in their order. */
export function trialAxis(p: Palette) {
  return {
    type: "value",
    name: "trial",
    nameLocation: "middle",
    nameGap: 26,
    min: 0,
    minInterval: 1,
    ...axisLook(p),
  };
}

/** The axis of the metric, with its name above it. */
export function valueAxis(p: Palette, metric: string) {
  return {
    type: "value",
    name: metric,
    scale: true,
    ...axisLook(p),
    nameTextStyle: { color: p.ink, fontSize: 12, align: "left" },
  };
}

/** A brush that is drawn once: it chooses, and goes. */
export function brush(p: Palette) {
  return {
    xAxisIndex: 0,
    brushStyle: { color: "rgba(128,128,128,0.15)", borderColor: p.run, borderWidth: 1 },
    throttleType: "debounce",
    outOfBrush: { colorAlpha: 1 },
  };
}

function mark(n: number, x: number, y: number, text: string, chosen: Chosen, p: Palette, color: string) {
  const on = chosen.has(n);

  return {
    trial: n,
    text,
    value: [x, y],
    symbolSize: on ? 11 : 7,
    itemStyle: { color: on ? p.pick : color, opacity: chosen.size > 0 && !on ? 0.35 : 0.85 },
  };
}

export function historyOption(h: History, metric: string, chosen: Chosen, p: Palette): EChartsCoreOption {
  // A trial without a value is drawn at the worst one.
  const values = [...h.done, ...h.running].map(([, v]) => v ?? NaN).filter((v) => !Number.isNaN(v));
  const worse = h.goal === "minimize" ? Math.max : Math.min;
  const worst = values.length > 0 ? values.reduce((a, b) => worse(a, b)) : 0;
  const scatter = (name: string, symbol: string, data: object[]) => ({ name, type: "scatter", symbol, data, z: 3 });

  return {
    grid: { left: 8, right: 12, top: 28, bottom: 28, containLabel: true },
    tooltip: tooltip(p),
    brush: brush(p),
    toolbox: { show: false },
    xAxis: trialAxis(p),
    yAxis: valueAxis(p, metric),
    series: [
      {
        name: "best so far",
        type: "line",
        step: "end",
        showSymbol: false,
        silent: true,
        lineStyle: { color: p.done, width: 2 },
        data: h.best,
        z: 2,
      },
      scatter(
        "done",
        "circle",
        h.done.map(([n, v]) => mark(n, n, v, `Trial ${n}: ${decimal(v)}`, chosen, p, p.run)),
      ),
      scatter(
        "running",
        "emptyCircle",
        h.running.map(([n, v]) =>
          mark(
            n,
            n,
            v === undefined || Number.isNaN(v) ? worst : v,
            `Trial ${n} runs: ${lastText(v)}`,
            chosen,
            p,
            p.warn,
          ),
        ),
      ),
      scatter(
        "failed",
        "path://M1 3L3 1L8 6L13 1L15 3L10 8L15 13L13 15L8 10L3 15L1 13L6 8Z",
        h.failed.map((n) => mark(n, n, worst, `Trial ${n} failed`, chosen, p, p.bad)),
      ),
    ],
  };
}

function lastText(v: number | undefined): string {
  if (v === undefined) return "no value yet";

  return Number.isNaN(v) ? "its last value is not finite" : `${decimal(v)} so far`;
}

export function sliceOption(
  axis: Axis,
  trials: Scored[],
  metric: string,
  chosen: Chosen,
  p: Palette,
): EChartsCoreOption {
  const labels = axis.labels;

  return {
    grid: { left: 8, right: 16, top: 28, bottom: 28, containLabel: true },
    tooltip: tooltip(p),
    brush: brush(p),
    toolbox: { show: false },
    xAxis: {
      type: axis.log ? "log" : "value",
      name: axis.name,
      nameLocation: "middle",
      nameGap: 26,
      scale: true,
      ...axisLook(p),
      ...decades(axisLook(p), axis.log),
      ...(labels && {
        min: -0.5,
        max: labels.length - 0.5,
        splitLine: { show: false },
        axisTick: { show: false },
        axisLabel: {
          color: p.ink,
          fontSize: 12,
          hideOverlap: true,
          customValues: labels.map((_, at) => at),
          formatter: (at: number) => clipped(labels[at] ?? ""),
        },
      }),
    },
    yAxis: valueAxis(p, metric),
    series: [
      {
        type: "scatter",
        data: trials.flatMap((trial) => {
          const at = place(axis, trial);
          if (at === undefined) return [];
          const x = labels ? at + jitter(trial.number) : at;

          return [
            mark(
              trial.number,
              x,
              trial.value,
              `Trial ${trial.number}: ${decimal(trial.value)} at ${labels?.[at] ?? decimal(at)}`,
              chosen,
              p,
              p.run,
            ),
          ];
        }),
      },
    ],
  };
}

/** Trade is a trial with the results of all objectives, by metric; front: no other trial is better in all objectives. */
export interface Trade {
  trial: number;
  results: Record<string, number>;
  front: boolean;
}

/** tradeAt is a trial's place among the first two objectives. */
export function tradeAt({ results }: Trade, [x = "", y = ""]: string[]): [number, number] {
  return [results[x] ?? NaN, results[y] ?? NaN];
}

/** The first two objectives over each other. The front is joined unless there is a third one, which scatters it. */
export function tradesOption(trades: Trade[], metrics: string[], chosen: Chosen, p: Palette): EChartsCoreOption {
  const joined = metrics.length > 2 ? [] : trades.filter(({ front }) => front);
  const text = ({ trial, results }: Trade) =>
    `Trial ${trial}: ${metrics.map((name) => `${name} ${decimal(results[name] ?? NaN)}`).join(", ")}`;

  return {
    grid: { left: 8, right: 16, top: 28, bottom: 28, containLabel: true },
    tooltip: tooltip(p),
    brush: brush(p),
    toolbox: { show: false },
    xAxis: { type: "value", name: metrics[0], nameLocation: "middle", nameGap: 26, scale: true, ...axisLook(p) },
    yAxis: valueAxis(p, metrics[1] ?? ""),
    series: [
      {
        name: "joined",
        type: "line",
        showSymbol: false,
        silent: true,
        lineStyle: { color: p.done, width: 1 },
        data: joined.map((one) => tradeAt(one, metrics)),
        z: 2,
      },
      {
        name: "trades",
        type: "scatter",
        data: trades.map((one) => {
          const look = mark(one.trial, ...tradeAt(one, metrics), text(one), chosen, p, one.front ? p.done : p.run);

          return one.front ? { ...look, symbol: "diamond", symbolSize: look.symbolSize + 4 } : look;
        }),
        z: 3,
      },
    ],
  };
}

/** jitter sets marks of one choice apart; it is the same at each draw. */
export function jitter(n: number): number {
  return (((n * 7919) % 101) / 100 - 0.5) * 0.5;
}

export function clipped(label: string): string {
  return label.length > 14 ? `${label.slice(0, 13)}…` : label;
}
