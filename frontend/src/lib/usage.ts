import { withGaps } from "@/lib/gaps";
import type { UsagePoint } from "@/services/hosts";

/** How full a machine or a GPU was in one interval; null was not measured. */
export interface Usage {
  /** second is when the interval begins, since 1970. */
  second: number;
  total: number | null; // bytes
  reserved: number | null;
  held: number | null; // by attempts, as measured
  others: number | null; // by programs outside Berth
  sm: number | null; // the part of a GPU's SMs, 0 to 1
  attempts: number | null;
}

/** usage are points by time; one interval without figures stands for each gap. */
export function usage(points: UsagePoint[], every: number): Usage[] {
  const rows = points.map((point) => ({
    second: Date.parse(point.at) / 1000,
    total: point.memory_bytes,
    reserved: point.reserved_bytes,
    held: point.measured_bytes ?? null,
    others: point.used_by_others_bytes ?? null,
    sm: point.sm_activity ?? null,
    attempts: point.attempts,
  }));

  return withGaps<Usage>(
    rows,
    every,
    (row) => row.second,
    (second) => ({ second, total: null, reserved: null, held: null, others: null, sm: null, attempts: null }),
  );
}
