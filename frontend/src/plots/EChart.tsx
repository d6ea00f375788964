import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  BrushComponent,
  DataZoomComponent,
  GridComponent,
  ParallelComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { init, use as register, type EChartsCoreOption, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";

register([
  BarChart,
  CustomChart,
  LineChart,
  ParallelChart,
  ScatterChart,
  AriaComponent,
  BrushComponent,
  DataZoomComponent,
  GridComponent,
  ParallelComponent,
  ToolboxComponent,
  TooltipComponent,
  CanvasRenderer,
]);

type Range = [number, number];

interface Props {
  option: EChartsCoreOption;
  label: string;
  height: number;
  /** onPick is called with the number of the trial whose mark was pressed. */
  onPick?: (trial: number) => void;
  /** onRectangle lets a person draw one; it is called with its two ranges. */
  onRectangle?: (x: Range, y: Range) => void;
  /** onAxis is called with the ranges that were drawn on an axis of parallel coordinates. */
  onAxis?: (axis: number, ranges: Range[]) => void;
}

/** One chart on a canvas, which follows the size of its place. A mark's trial is its trial's number. */
export default function EChart({ option, label, height, onPick, onRectangle, onAxis }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const calls = useRef({ onPick, onRectangle, onAxis });
  const draws = onRectangle !== undefined;

  useEffect(() => {
    calls.current = { onPick, onRectangle, onAxis };
  });

  useEffect(() => {
    if (!box.current) return;
    const made = init(box.current);
    chart.current = made;
    made.on("click", (event) => {
      const { data } = event as { data?: { trial?: number } };
      if (typeof data?.trial === "number") calls.current.onPick?.(data.trial);
    });
    made.on("brushEnd", (event) => {
      const [area] = (event as { areas?: { coordRange?: [Range, Range] }[] }).areas ?? [];
      if (!area?.coordRange) return;
      calls.current.onRectangle?.(...area.coordRange);
      made.dispatchAction({ type: "brush", areas: [] });
    });
    made.on("axisareaselected", (event) => {
      const { parallelAxisId, intervals } = event as { parallelAxisId?: string; intervals?: Range[] };
      calls.current.onAxis?.(Number(parallelAxisId), intervals ?? []);
    });
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(box.current);

    return () => {
      observer.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    // Merged, so that the user's selections on axes stay when new trials come.
    chart.current?.setOption({ animation: false, ...option }, { replaceMerge: ["series"] });
    // A finger scrolls the page; only a pointer draws.
    if (draws && window.matchMedia("(pointer: fine)").matches) {
      chart.current?.dispatchAction({
        type: "takeGlobalCursor",
        key: "brush",
        brushOption: { brushType: "rect", brushMode: "single" },
      });
    }
  }, [option, draws]);

  return <div ref={box} role="img" aria-label={label} style={{ width: "100%", height }} />;
}
