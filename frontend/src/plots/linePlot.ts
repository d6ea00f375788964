import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { bytes, decimal, duration, grouped, percent } from "@/lib/format";
import { palette } from "@/plots/palette";

/** What an axis measures: its unit decides how it is written, where its ticks are, and whether it begins at 0. */
export type Unit = "step" | "seconds" | "clock" | "number" | "bytes" | "share";

const GiB = 1024 ** 3;

/** gib writes a mark of an axis that goes beyond 10 GiB: one axis has one unit. */
const gib = (n: number) => `${decimal(n / GiB)} GiB`;

/** clock is a moment of the last days, in the reader's zone. */
const clock = (second: number) =>
  new Date(second * 1000).toLocaleString("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });

const written: Record<Unit, (n: number) => string> = {
  step: grouped,
  seconds: (n) => (n === 0 ? "0 s" : duration(n)),
  clock,
  number: decimal,
  bytes,
  share: percent,
};

// Round numbers of time and of memory are not powers of ten.
const ticks: Partial<Record<Unit, number[]>> = {
  step: Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat(),
  seconds: [
    1,
    2,
    5,
    10,
    15,
    30,
    ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 10_080].map((minutes) => 60 * minutes),
  ],
  bytes: Array.from({ length: 24 }, (_, power) => 2 ** (20 + power)), // 1 MiB to 8 TiB
};

/** Memory is drawn from nothing, or its size could not be compared; a share is drawn against the whole. */
const ranges: Partial<Record<Unit, uPlot.Scale.Range>> = {
  bytes: (_, __, most) => [0, Math.max(most * 1.08, 1)],
  share: [0, 1],
};

interface Options extends Pick<uPlot.Options, "height" | "legend"> {
  x: Unit;
  y: Unit;
  lines: uPlot.Series[];
}

/** linePlot draws lines as wide as their target; the result takes them away. */
export function linePlot(
  target: HTMLElement,
  data: uPlot.AlignedData,
  dark: boolean,
  { height, legend, x, y, lines }: Options,
): () => void {
  const p = palette(dark);
  const grid = { stroke: p.line, width: 1 };
  const axis = (unit: Unit): uPlot.Axis => ({
    stroke: p.ink,
    grid,
    ticks: grid,
    font: "12px system-ui",
    values: (_: uPlot, marks: number[]) =>
      marks.map(unit === "bytes" && (marks.at(-1) ?? 0) >= 10 * GiB ? gib : written[unit]),
    ...(ticks[unit] && { incrs: ticks[unit] }),
    ...(unit === "clock" && { space: 100 }),
  });
  const value = (unit: Unit) => (_: uPlot, n: number | null) => (n === null ? "–" : written[unit](n));
  const plot = new uPlot(
    {
      width: target.clientWidth,
      height,
      ...(x === "clock" && { padding: [null, 36, null, null] }), // the last mark is wider than the usual edge
      scales: { x: { time: x === "clock" }, y: ranges[y] ? { range: ranges[y] } : {} },
      ...(legend && { legend }),
      cursor: { drag: { x: true, y: false } },
      series: [
        { label: x === "step" ? "step" : "time", value: value(x) },
        ...lines.map((line) => ({ value: value(y), ...line })),
      ],
      axes: [axis(x), { ...axis(y), size: 76 }],
    },
    data,
    target,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: target.clientWidth, height }));
  observer.observe(target);

  return () => {
    observer.disconnect();
    plot.destroy();
  };
}
