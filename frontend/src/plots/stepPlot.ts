import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import { decimal } from "@/lib/format";
import { palette } from "@/plots/palette";

type Options = Pick<uPlot.Options, "height" | "legend"> & { lines: uPlot.Series[] };

/** stepPlot draws values over steps as wide as its target; the result takes them away. */
export function stepPlot(
  target: HTMLElement,
  data: uPlot.AlignedData,
  dark: boolean,
  { height, legend, lines }: Options,
): () => void {
  const p = palette(dark);
  const grid = { stroke: p.line, width: 1 };
  const axis = { stroke: p.ink, grid, ticks: grid, font: "12px system-ui" };
  const plot = new uPlot(
    {
      width: target.clientWidth,
      height,
      scales: { x: { time: false } },
      ...(legend && { legend }),
      cursor: { drag: { x: true, y: false } },
      series: [{ label: "step" }, ...lines],
      axes: [axis, { ...axis, size: 64, values: (_: uPlot, ticks: number[]) => ticks.map(decimal) }],
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
