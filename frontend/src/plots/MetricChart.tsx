import { useEffect, useRef } from "react";
import { decimal } from "@/lib/format";
import type { Series } from "@/lib/metrics";
import { palette } from "@/plots/palette";
import { stepPlot } from "@/plots/stepPlot";

/** One metric over its steps. The table beside it says the same in text. */
export default function MetricChart({ line, dark }: { line: Series; dark: boolean }) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const target = box.current;
    if (!target) return;

    return stepPlot(target, [line.steps, line.values], dark, {
      height: 200,
      lines: [
        {
          label: line.name,
          stroke: palette(dark).run,
          width: 2,
          points: { show: line.steps.length < 60 },
          value: (_, v: number | null) => (v === null ? "–" : decimal(v)),
        },
      ],
    });
  }, [line, dark]);

  return (
    <div ref={box} role="img" aria-label={`${line.name} over ${line.steps.length} steps; the table has the values`} />
  );
}
