import { bytes, percent } from "@/lib/format";

interface Props {
  label: string;
  reserved: number;
  peak: number; // 0 = not measured
  runs?: boolean; // its peak is told at its end
}

/** A measured peak beside the reservation, which is the line. */
export function PeakBar({ label, reserved, peak, runs }: Props) {
  if (reserved <= 0) return null;
  const most = Math.max(reserved, peak) * 1.08;
  const text =
    peak > 0
      ? `peak ${bytes(peak)} of ${bytes(reserved)} reserved (${percent(peak / reserved)})`
      : `${bytes(reserved)} reserved, peak ${runs ? "told at its end" : "not measured"}`;

  return (
    <div style={{ minWidth: 200 }}>
      <svg width="100%" height="14" role="img" aria-label={`${label}: ${text}`}>
        <rect width="100%" height="10" y="2" rx="3" fill="var(--line)" />
        <rect
          width={`${(100 * peak) / most}%`}
          height="10"
          y="2"
          rx="3"
          fill={peak > reserved ? "var(--bad)" : "var(--run)"}
        />
        <rect x={`${(100 * reserved) / most}%`} width="2" height="14" fill="var(--mantine-color-text)" />
      </svg>
      <div style={{ fontSize: 12, color: "var(--mantine-color-dimmed)" }} className="tabular">
        {label}: {text}
      </div>
    </div>
  );
}
