import type { AttemptMemory } from "@/services/trials";

/** What an attempt held in one interval; null was not measured. */
export interface Held {
  /** second is when the interval begins, since the attempt's start. */
  second: number;
  host: number | null; // bytes
  device: number | null; // bytes, of its GPU
  sm: number | null; // the part of its GPU's SMs, 0 to 1
}

/** held are the points of an attempt by time; one interval without figures stands for each gap, so that no line crosses it. */
export function held({ points, interval_seconds: every }: AttemptMemory, start: string): Held[] {
  const rows: Held[] = [];
  for (const point of points) {
    const second = Math.max(0, Math.round((Date.parse(point.at) - Date.parse(start)) / 1000));
    const last = rows.at(-1);
    if (last && second > last.second + every)
      rows.push({ second: last.second + every, host: null, device: null, sm: null });
    rows.push({
      second,
      host: point.host_bytes ?? null,
      device: point.device_bytes ?? null,
      sm: point.sm_activity ?? null,
    });
  }

  return rows;
}
