import { readNumbers, writeNumbers } from "@/lib/overview/selection";
import { sweepStates, trialStates } from "@/lib/states";
import type { SweepSort, SweepState } from "@/services/sweeps";
import type { TrialSort, TrialState } from "@/services/trials";

/** The search parameters of pages, read from addresses that users may have typed. */
export interface SweepsSearch {
  state?: SweepState[];
  name?: string; // contained
  by?: string; // its user
  sort?: Exclude<SweepSort, "-created_at">; // absent = newest first
}

export type SweepTab = "overview" | "trials" | "report" | "spec";

export interface SweepSearch {
  tab?: SweepTab;
  state?: TrialState[];
  sort?: Exclude<TrialSort, "number">; // absent = by number
  min?: number; // of the value
  max?: number;
  stage?: string; // key whose output they use
  trials?: string; // the chosen ones, as numbers and ranges
  metric?: string; // whose curves are shown; absent = the objective's
}

export interface TrialSearch {
  attempt?: number; // absent = the newest
}

export interface CompareSearch {
  ids?: string[];
}

export interface NewSearch {
  from?: string; // "example", or the id of an earlier sweep
  trial?: number; // of that sweep: it alone runs again
}

type Raw = Record<string, unknown>;

export function parseSweepsSearch(raw: Raw): SweepsSearch {
  const state = among(raw.state, sweepStates);
  const [sort] = among<NonNullable<SweepsSearch["sort"]>>(raw.sort, [
    "created_at",
    "name",
    "-name",
    "finished_at",
    "-finished_at",
  ]);
  const name = text(raw.name);
  const by = text(raw.by);

  return { ...(state.length > 0 && { state }), ...(name && { name }), ...(by && { by }), ...(sort && { sort }) };
}

export function parseSweepSearch(raw: Raw): SweepSearch {
  const state = among(raw.state, trialStates);
  const [tab] = among<SweepTab>(raw.tab, ["overview", "trials", "report", "spec"]);
  const [sort] = among<NonNullable<SweepSearch["sort"]>>(raw.sort, [
    "-number",
    "value",
    "-value",
    "duration",
    "-duration",
  ]);
  const min = finite(raw.min);
  const max = finite(raw.max);
  const trials = writeNumbers(readNumbers(text(raw.trials, 4000)));
  const metric = text(raw.metric);
  const stage = /^[0-9a-f]{1,64}$/.exec(text(raw.stage))?.[0];

  return {
    ...(tab && { tab }),
    ...(sort && { sort }),
    ...(state.length > 0 && { state }),
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
    ...(stage !== undefined && { stage }),
    ...(trials !== "" && { trials }),
    ...(metric !== "" && { metric }),
  };
}

export function parseTrialSearch(raw: Raw): TrialSearch {
  const attempt = finite(raw.attempt);

  return attempt !== undefined && Number.isInteger(attempt) && attempt > 0 ? { attempt } : {};
}

export function parseCompareSearch(raw: Raw): CompareSearch {
  const list: unknown[] = Array.isArray(raw.ids) ? raw.ids : typeof raw.ids === "string" ? raw.ids.split(",") : [];
  const ids = [...new Set(list.map((id) => text(id)))].filter((id) => id !== "").slice(0, 100);

  return ids.length > 0 ? { ids } : {};
}

export function parseNewSearch(raw: Raw): NewSearch {
  if (typeof raw.from !== "string" || raw.from === "") return {};
  const trial = finite(raw.trial);

  return { from: raw.from, ...(trial !== undefined && { trial }) };
}

/** text is the user's search; the router reads a name such as 12 as a number. The API takes 200 characters. */
function text(raw: unknown, most = 200): string {
  return typeof raw === "string" || typeof raw === "number" ? String(raw).slice(0, most) : "";
}

function finite(raw: unknown): number | undefined {
  const n = typeof raw === "number" ? raw : typeof raw === "string" && raw.trim() !== "" ? Number(raw) : NaN;

  return Number.isFinite(n) ? n : undefined;
}

function among<T extends string>(raw: unknown, known: T[]): T[] {
  const asked = Array.isArray(raw) ? raw : typeof raw === "string" ? raw.split(",") : [];

  return known.filter((word) => asked.includes(word));
}
