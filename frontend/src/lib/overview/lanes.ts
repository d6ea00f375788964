import { gpuName } from "@/lib/format";
import { failureText } from "@/lib/states";
import type { Attempt } from "@/services/trials";

export type BarLook = "done" | "running" | "starting" | "failed" | "repeated" | "canceled";

export interface Bar {
  trial: number;
  attempt: number;
  row: number;
  from: number; // ms
  to: number;
  look: BarLook;
  text: string;
  place: string;
}

export interface Lanes {
  bars: Bar[];
  /** rows are labelled by their host or GPU; the further rows of one are empty. */
  rows: string[];
}

const texts: Record<BarLook, string> = {
  done: "Finished",
  running: "Running",
  starting: "Starting",
  failed: "Failed",
  repeated: "Out of memory, repeated with more",
  canceled: "Canceled",
};

/** lanes puts attempts on rows: the rows of one host or GPU are together, and simultaneous attempts have separate rows. */
export function lanes(attempts: Attempt[], hostNames: ReadonlyMap<string, string>, now: number): Lanes {
  const newest = new Map<number | undefined, number>();
  for (const { trial_number: trial, number } of attempts) {
    newest.set(trial, Math.max(number, newest.get(trial) ?? 0));
  }

  const places = new Map<string, { name: string; list: Attempt[] }>();
  for (const attempt of attempts) {
    const host = hostNames.get(attempt.host_id) ?? attempt.host_id.slice(0, 8);
    const name = attempt.device_id === undefined ? host : `${host}, ${gpuName(attempt.device_id)}`;
    const key = `${attempt.host_id}/${attempt.device_id ?? ""}`;
    const place = places.get(key) ?? { name, list: [] };
    places.set(key, place);
    place.list.push(attempt);
  }

  const all: Lanes = { bars: [], rows: [] };
  for (const { name: place, list } of [...places.values()].sort((a, b) => a.name.localeCompare(b.name))) {
    const first = all.rows.length;
    const ends: number[] = [];
    for (const attempt of list.toSorted((a, b) => start(a) - start(b))) {
      const from = start(attempt);
      const to = Math.max(from, attempt.finished_at === undefined ? now : Date.parse(attempt.finished_at));
      let row = ends.findIndex((end) => end <= from);
      if (row < 0) row = ends.length;
      ends[row] = to;
      const look = lookOf(attempt, attempt.number < (newest.get(attempt.trial_number) ?? 0));
      all.bars.push({
        trial: attempt.trial_number ?? 0,
        attempt: attempt.number,
        row: first + row,
        from,
        to,
        look,
        text: look === "failed" || attempt.failure_kind === "pruned" ? failureText(attempt.failure_kind) : texts[look],
        place,
      });
    }
    ends.forEach((_, i) => all.rows.push(i === 0 ? place : ""));
  }

  return all;
}

function start(attempt: Attempt): number {
  return Date.parse(attempt.started_at ?? attempt.placed_at);
}

function lookOf(attempt: Attempt, followed: boolean): BarLook {
  const { state, failure_kind: kind, started_at: started, finished_at: finished } = attempt;
  if (kind === undefined && finished === undefined && state !== "abandoned") {
    return started === undefined ? "starting" : "running";
  }
  if (kind === "canceled" || kind === "pruned") return "canceled";
  if (followed && (kind === "host_oom" || kind === "device_oom")) return "repeated";

  return kind === "ok" ? "done" : "failed";
}
