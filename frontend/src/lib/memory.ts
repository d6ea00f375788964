import { withGaps } from "@/lib/gaps";
import type { AttemptMemory } from "@/services/trials";

/** An attempt's memory in one interval; null = not measured. */
export interface Held {
  /** second is when the interval begins, since the attempt's start. */
  second: number;
  host: number | null; // bytes
  device: number | null; // bytes, of its GPU
  sm: number | null; // the part of its GPU's SMs, 0 to 1
}

/** held are the points of an attempt by time; one interval without figures stands for each gap. */
export function held({ points, interval_seconds: every }: AttemptMemory, start: string): Held[] {
  const rows = points.map((point) => ({
    second: Math.max(0, Math.round((Date.parse(point.at) - Date.parse(start)) / 1000)),
    host: point.host_bytes ?? null,
    device: point.device_bytes ?? null,
    sm: point.sm_activity ?? null,
  }));

  return withGaps<Held>(
    rows,
    every,
    (row) => row.second,
    (second) => ({ second, host: null, device: null, sm: null }),
  );
}
