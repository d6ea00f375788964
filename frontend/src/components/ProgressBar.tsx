import type { Segment } from "@/lib/progress";

/** How far a sweep is, segment by segment, with the same in words. */
export function ProgressBar({ segments, text, label }: { segments: Segment[]; text: string; label: string }) {
  const total = segments.reduce((sum, segment) => sum + segment.count, 0);

  return (
    <div style={{ minWidth: 120 }}>
      <div className="segments" role="img" aria-label={`${label}: ${text}`}>
        {segments.map((segment) => (
          <div
            key={segment.name}
            title={`${segment.name}: ${segment.count}`}
            style={{ width: `${(100 * segment.count) / Math.max(total, 1)}%`, background: segment.fill }}
          />
        ))}
      </div>
      <div
        aria-hidden="true"
        className="num"
        style={{ fontSize: 12, color: "var(--mantine-color-dimmed)", marginTop: 3 }}
      >
        {text}
      </div>
    </div>
  );
}
