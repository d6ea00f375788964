import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { marksOf, ticks, whole, written, type Unit } from "@/plots/axisMarks";
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

/** How near to a line the pointer must be to ask for it, in pixels. */
const NEAR = 30;

const labelLook = { labelSize: 20, labelFont: "12px system-ui" };

/** nearest is the point of a line that is nearest to a place on the x axis: lines have steps of their own. */
export function nearest(plot: uPlot, line: number, at: number): number {
  const values = plot.data[line] ?? [];
  for (let away = 0; away < values.length; away++) {
    for (const i of [at - away, at + away]) if (values[i] !== null && values[i] !== undefined) return i;
  }

  return at;
}

/** tips shows the text of the point that the pointer is near to. */
function tips(text: (line: number, x: number) => string): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = "tip";
  box.hidden = true;
  let focused: number | null = null;

  const move = (plot: uPlot) => {
    const i = focused === null ? null : (plot.cursor.idxs?.[focused] ?? null);
    const y = focused === null || i === null ? null : plot.data[focused]?.[i];
    box.hidden = focused === null || i === null || y === null || y === undefined;
    if (focused === null || i === null || y === null || y === undefined) return;

    const x = plot.data[0][i] ?? 0;
    const left = plot.valToPos(x, "x");
    const right = left > plot.over.clientWidth / 2;
    box.textContent = text(focused - 1, x);
    box.style.left = right ? "auto" : `${left + 10}px`;
    box.style.right = right ? `${plot.over.clientWidth - left + 10}px` : "auto";
    box.style.top = `${Math.max(plot.valToPos(y, "y") - 30, 0)}px`;
  };

  return {
    hooks: {
      init: (plot) => {
        plot.over.append(box);
      },
      setSeries: (plot, line) => {
        focused = line;
        move(plot);
      },
      setCursor: move,
    },
  };
}

interface Options extends Pick<uPlot.Options, "height" | "legend"> {
  x: Unit;
  y: Unit;
  /** names are those of the axes. */
  names?: { x: string; y: string };
  /** log draws y by its decades; values of 0 and less have no place there. */
  log?: boolean;
  lines: uPlot.Series[];
  /** tip is the text at a point of a line, while the pointer is near it. */
  tip?: (line: number, x: number) => string;
}

/** linePlot draws lines as wide as their target; the result takes them away. */
export function linePlot(
  target: HTMLElement,
  data: uPlot.AlignedData,
  dark: boolean,
  { height, legend, x, y, names, log, lines, tip }: Options,
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
      scales: {
        x: { time: x === "clock" },
        // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its enum has no value at run time
        y: log ? { distr: 3 } : ranges[y] ? { range: ranges[y] } : {},
      },
      ...(legend && { legend }),
      cursor: { drag: { x: true, y: false }, ...(tip && { focus: { prox: NEAR }, dataIdx: nearest }) },
      ...(tip && { focus: { alpha: 0.3 }, plugins: [tips(tip)] }),
      series: [
        { label: x === "step" ? "step" : "time", value: value(x) },
        ...lines.map((line) => ({ value: value(y), ...line })),
      ],
      axes: [
        { ...axis(x), ...(names && { label: names.x, ...labelLook }) },
        {
          ...axis(y),
          size: y === "number" ? widthOfMarks : 76,
          ...(log && {
            values: (_: uPlot, marks: (number | null)[]) => marks.map((n) => (n === null ? "" : whole(n))),
          }),
          ...(names && { label: names.y, ...labelLook }),
        },
      ],
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
