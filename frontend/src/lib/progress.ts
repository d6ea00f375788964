import { grouped } from "@/lib/format";
import type { Sweep } from "@/services/sweeps";

export interface Segment {
  name: string;
  count: number;
  fill: string;
}

const striped = (color: string) =>
  `repeating-linear-gradient(135deg, ${color} 0 4px, color-mix(in srgb, ${color} 55%, transparent) 4px 8px)`;

/**
 * segments are the trials of a sweep by state; planned ones without a row wait,
 * unless the sweep has ended and never creates them.
 */
export function segments(counts: Sweep["counts"], over = false): Segment[] {
  const all = Math.max(counts.planned, counts.total);
  const failed = counts.failed + counts.infeasible;
  const rest = all - counts.succeeded - counts.running - failed - counts.canceled - counts.pruned;

  return [
    { name: "succeeded", count: counts.succeeded, fill: "var(--done)" },
    { name: "running", count: counts.running, fill: striped("var(--run)") },
    { name: "stopped early", count: counts.pruned, fill: striped("var(--done)") },
    { name: "failed", count: failed, fill: "var(--bad)" },
    { name: "canceled", count: counts.canceled, fill: "var(--wait)" },
    { name: over ? "not run" : "waiting", count: Math.max(0, rest), fill: "var(--line)" },
  ].filter((segment) => segment.count > 0);
}

/** progressText says the same in words. */
export function progressText(counts: Sweep["counts"], over = false): string {
  const all = Math.max(counts.planned, counts.total);
  if (all === 0) return "no trials yet";

  const rest = segments(counts, over)
    .filter((segment) => segment.name !== "succeeded" && segment.name !== "waiting")
    .map((segment) => `${grouped(segment.count)} ${segment.name}`);

  return [`${grouped(counts.succeeded)} of ${grouped(all)} succeeded`, ...rest].join(", ");
}
