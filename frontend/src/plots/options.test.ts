import { LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  BrushComponent,
  GridComponent,
  ParallelComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { init, use as register } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { expect, it } from "vitest";
import { axesOf } from "@/lib/overview/axes";
import { history } from "@/lib/overview/history";
import { scored } from "@/lib/overview/sample";
import { bestOption } from "@/plots/bestOption";
import { historyOption, sliceOption, tradesOption, type Trade } from "@/plots/options";
import { palette } from "@/plots/palette";
import { parallelOption } from "@/plots/parallelOption";
import { failedTrial, runningTrial, trial } from "@/test/factories/trial";

const p = palette(false);

/** The heights of the marks of a series of a history. */
function heights(option: unknown, name: string) {
  const { series } = option as { series: { name: string; data: { value: [number, number] }[] }[] };

  return series.find((one) => one.name === name)?.data.map((one) => one.value[1]);
}

const starting = { ...runningTrial(), number: 3, latest_attempt: undefined };

it.each([
  ["minimize", 0.9],
  ["maximize", 0.1],
] as const)("a history draws what has no value at the worst one: %s", (goal, worst) => {
  const rows = [
    trial({ number: 1, value: 0.1 }),
    trial({ number: 2, value: 0.9 }),
    starting,
    { ...failedTrial(), number: 4 },
  ];
  const option = historyOption(history(rows, goal), "loss", new Set(), p);
  expect(heights(option, "running")).toEqual([worst]);
  expect(heights(option, "failed")).toEqual([worst]);
});

it("a history tells a last value that is not finite from none", () => {
  const base = runningTrial();
  const metric = { name: "val", step: 3, status: "nan" as const, at: "2026-01-01T00:00:20Z" };
  const odd = { ...base, number: 2, latest_attempt: base.latest_attempt && { ...base.latest_attempt, last_metric: metric } }; // prettier-ignore
  const option = historyOption(history([trial({ value: 0.5 }), odd, starting], "maximize"), "val", new Set(), p);
  expect(heights(option, "running")).toEqual([0.5, 0.5]);
  expect(JSON.stringify(option)).toContain("Trial 2 runs: its last value is not finite");
  expect(JSON.stringify(option)).toContain("Trial 3 runs: no value yet");
});

it.each([
  [3, 1],
  [10, 1],
  [25, 2],
])("parallel coordinates of %i trials have the best %i in colour", (n, good) => {
  const rows = scored(Array.from({ length: n }, (_, i) => trial({ number: i + 1, value: i, params: { x: i } })));
  const [series] = parallelOption(axesOf(rows, undefined), rows, "v", new Set(), p).series as {
    data: { lineStyle: { color: string } }[];
  }[];
  const strong = series?.data.map((one) => one.lineStyle.color === p.run);
  expect(strong).toEqual(rows.map((_, i) => i >= n - good));
});

register([
  LineChart,
  ScatterChart,
  ParallelChart,
  GridComponent,
  ParallelComponent,
  TooltipComponent,
  BrushComponent,
  ToolboxComponent,
  SVGRenderer,
]);

/** A chart as it is drawn. */
function svg(option: object) {
  const chart = init(null, null, { renderer: "svg", ssr: true, width: 800, height: 240 });
  chart.setOption({ animation: false, ...option });

  return chart.renderToSVGString();
}

function texts(option: object) {
  return [...svg(option).matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((match) => match[1]);
}

it("writes the decades of a log axis as one writes them", () => {
  const rows = scored([1e-5, 1e-3, 1e-2].map((lr, i) => trial({ number: i + 1, value: i, params: { lr } })));
  const axis = { name: "lr", log: true };
  const wanted = ["1e-5", "1e-4", "0.001", "0.01"];
  expect(texts(sliceOption(axis, rows, "loss", new Set(), p))).toEqual(expect.arrayContaining(wanted));
  expect(texts(parallelOption([axis], rows, "loss", new Set(), p))).toEqual(expect.arrayContaining(wanted));
});

it.each([
  [0.9999981, 0.9999989],
  [250_000.01, 250_000.09],
])("tells the marks of an axis from %d to %d apart", (from, to) => {
  const rows = scored(
    [from, (from + to) / 2, to].map((value, i) => trial({ number: i + 1, value, params: { lr: i } })),
  );
  const drawn = texts(sliceOption({ name: "lr", log: false }, rows, "loss", new Set(), p));
  expect(drawn.length).toBeGreaterThan(6);
  expect(new Set(drawn).size).toBe(drawn.length);
});

it("draws the best of a sweep with one trial as a point, and numbers trials as whole", () => {
  const option = (...best: [number, number][]) => bestOption([{ name: "a", best }], "loss", p);
  const strokes = (drawn: string) => drawn.split(`stroke="${p.run}"`).length - 1;
  expect(strokes(svg(option([1, 50], [2, 60])))).toBe(1);
  expect(strokes(svg(option([1, 50])))).toBe(2); // a line of no length, and the point
  expect(texts(option([1, 50]))).toEqual(expect.arrayContaining(["0", "1"]));
  expect(texts(option([1, 50])).join()).not.toContain("0.2");
});

it("draws the best trades in another colour and joined, and all objectives of each trial as text", () => {
  const trades: Trade[] = [
    { trial: 3, results: { acc: 0.8, ms: 19 }, front: false },
    { trial: 1, results: { acc: 0.95, ms: 18 }, front: true },
    { trial: 2, results: { acc: 0.9, ms: 12 }, front: true },
  ];
  const option = tradesOption(trades, ["acc", "ms"], new Set([2]), p);
  const [line, marks] = option.series as {
    data: { text: string; value: number[]; symbol?: string; itemStyle: { color: string } }[];
  }[];
  expect(marks?.data.map((one) => [one.text, one.value, one.itemStyle.color, one.symbol])).toEqual([
    ["Trial 3: acc 0.8, ms 19", [0.8, 19], p.run, undefined],
    ["Trial 1: acc 0.95, ms 18", [0.95, 18], p.done, "diamond"],
    ["Trial 2: acc 0.9, ms 12", [0.9, 12], p.pick, "diamond"],
  ]);
  expect(line?.data).toEqual([[0.95, 18], [0.9, 12]]); // prettier-ignore
  expect(texts(option)).toEqual(expect.arrayContaining(["acc", "ms"]));
  const [none] = tradesOption(trades, ["acc", "ms", "mb"], new Set(), p).series as { data: object[] }[];
  expect(none?.data).toEqual([]);
});

it.each([
  [1e-9, 9e-9],
  [1e-15, 3e-15],
  [0.9999981, 0.9999989],
  [250_000.01, 250_000.09],
  [1e9, 9e9],
  [-1e12, -1e11],
])("has room for marks of the metric from %d to %d in parallel coordinates, and tells them apart", (from, to) => {
  const rows = scored([from, to].map((value, i) => trial({ number: i + 1, value })));
  const option = parallelOption([], rows, "loss", new Set(), p);
  const marks = texts(option).filter((text = "") => /\d/.test(text));
  const width = ({ length }: string) => 8 + 5.2 * length; // px, with commas and points among the digits
  expect(marks.length).toBeGreaterThan(3);
  expect(new Set(marks).size).toBe(marks.length);
  expect(Math.max(...marks.map((mark = "") => width(mark)))).toBeLessThanOrEqual((option.parallel as { right: number }).right); // prettier-ignore
});
