import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { marksOf, ticks, written, type Unit } from "@/plots/axisMarks";
import { palette } from "@/plots/palette";

/** Memory is drawn from nothing, or its size could not be compared; a share is drawn against the whole. */
const ranges: Partial<Record<Unit, uPlot.Scale.Range>> = {
  bytes: (_, __, most) => [0, Math.max(most * 1.08, 1)],
  share: [0, 1],
};

/** A time with all its units is wide. It has them where a person looks at a part that begins late. */
const roomOfTimes: uPlot.Axis.Space = (_, __, from, to) => (to >= 3600 && to - from < to / 2 ? 110 : 50);

/** A mark of ten characters or more needs more than the usual room beside the chart. */
const widthOfMarks: uPlot.Axis.Size = (_, marks) =>
  Math.max(76, ...((marks as string[] | null) ?? []).map((mark) => Math.ceil(16 + 6.6 * mark.length)));

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
    values: (_, marks, __, ___, incr) => marksOf(unit, marks, incr),
    ...(ticks[unit] && { incrs: ticks[unit] }),
    ...(unit === "clock" && { space: 100 }),
    ...(unit === "seconds" && { space: roomOfTimes }),
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
      axes: [axis(x), { ...axis(y), size: y === "number" ? widthOfMarks : 76 }],
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
