import { bytes } from "@/lib/format";
import { packingText, type Part } from "@/lib/packing";

const fills: Record<Part["name"], string> = {
  reserved: "var(--run)",
  "held now": "color-mix(in srgb, var(--run) 45%, var(--surface))",
  "this sweep": "var(--run)",
  "used by others": "var(--warn)",
  headroom: "var(--other)",
  free: "var(--line)",
};

/** How full a memory is, as a bar and in words. */
export function PackingBar({ label, total, parts }: { label: string; total: number; parts: Part[] }) {
  const ends = parts.map((_, i) => parts.slice(0, i).reduce((sum, part) => sum + (part.drawn ?? part.bytes), 0));

  return (
    <div>
      <svg width="100%" height="22" role="img" aria-label={`${label}, ${packingText(total, parts)}`}>
        {parts.map((part, i) => (
          <rect
            key={part.name}
            x={`${(100 * (ends[i] ?? 0)) / total}%`}
            width={`${(100 * (part.drawn ?? part.bytes)) / total}%`}
            height="22"
            fill={fills[part.name]}
            stroke="var(--surface)"
          />
        ))}
      </svg>
      <ul className="plain tabular" style={{ display: "flex", flexWrap: "wrap", gap: "2px 16px", fontSize: 13 }}>
        {parts.map((part) => (
          <li key={part.name}>
            <span className="dot" style={{ background: fills[part.name] }} aria-hidden="true" />
            {bytes(part.bytes)} {part.name}
          </li>
        ))}
        <li>{bytes(total)} in all</li>
      </ul>
    </div>
  );
}
