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

/** Range is when the first and the last interval of a chart begin. */
export interface Range {
  from: number;
  to: number;
}

/**
 * rangeOf are the hours before a moment (ms) in which these points were read, in intervals of this many
 * seconds: one range for all, so that charts side by side can be compared. A missing newest point is no gap.
 */
export function rangeOf(tracks: UsagePoint[][], every: number, hours: number, read: number): Range {
  const seconds = tracks.flat().map(secondOf);
  const newest = Math.max(...seconds);
  const current = Math.floor(read / 1000 / every) * every;
  const first = current + every - Math.ceil((hours * 3600) / every) * every;

  return { from: Math.min(first, ...seconds), to: current > newest + every ? current : newest };
}

/** usage are points by time, from the first interval of a range to its last; intervals without figures stand for each gap. */
export function usage(points: UsagePoint[], every: number, { from, to }: Range): Usage[] {
  const rows = points.map((point) => ({
    second: secondOf(point),
    total: point.memory_bytes,
    reserved: point.reserved_bytes,
    held: point.measured_bytes ?? null,
    others: point.used_by_others_bytes ?? null,
    sm: point.sm_activity ?? null,
    attempts: point.attempts,
  }));

  const first = rows[0]?.second ?? to;
  const next = (rows.at(-1)?.second ?? to) + every;

  return [
    ...(from < first ? [unknown(from)] : []),
    ...withGaps<Usage>(rows, every, (row) => row.second, unknown),
    ...(next < to ? [unknown(next)] : []),
    ...(next <= to ? [unknown(to)] : []),
  ];
}

const secondOf = (point: UsagePoint) => Date.parse(point.at) / 1000;

const unknown = (second: number): Usage => ({
  second,
  total: null,
  reserved: null,
  held: null,
  others: null,
  sm: null,
  attempts: null,
});

/** told are the rows of a table: the first interval of a gap stands for all. */
export function told(rows: Usage[]): Usage[] {
  return rows.filter((row, i) => row.attempts !== null || rows[i - 1]?.attempts !== null);
}
