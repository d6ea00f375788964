import { bytes, percent } from "@/lib/format";
import type { GpuBar } from "@/lib/probes";

/** Sizes below each other, on the scale of a whole, or of the largest without one: measured ones are filled, the others are outlines. */
export function SizeBars({ whole, bars }: { whole: number | undefined; bars: GpuBar[] }) {
  const most = whole ?? Math.max(...bars.map((bar) => bar.bytes));

  return (
    <ul className="plain tabular" style={{ display: "grid", gap: 6, fontSize: 13 }}>
      {bars.map((bar) => (
        <li key={bar.name}>
          <div>
            {bar.name}: <strong>{bytes(bar.bytes)}</strong>
            {whole !== undefined && ` (${percent(bar.bytes / whole)})`}
            {bar.measured && ", measured"}
          </div>
          <svg width="100%" height="12" aria-hidden="true">
            <rect width="100%" height="12" rx="3" fill="var(--line)" />
            <rect
              x="1"
              y="1"
              width={`${Math.max(0.5, (99.8 * bar.bytes) / most)}%`}
              height="10"
              rx="3"
              fill={bar.measured ? "var(--run)" : "transparent"}
              stroke="var(--run)"
              strokeDasharray={bar.measured ? undefined : "4 3"}
            />
          </svg>
        </li>
      ))}
    </ul>
  );
}
