import { sweepStates, trialStates } from "@/lib/states";
import type { SweepState } from "@/services/sweeps";
import type { TrialState } from "@/services/trials";

/** What the addresses of pages hold, read from what a person may have typed. */
export interface SweepsSearch {
  state?: SweepState[];
}

export type SweepTab = "trials" | "report" | "spec";
export type TrialSort = "number" | "-number" | "best";

export interface SweepSearch {
  tab?: SweepTab;
  state?: TrialState[];
  sort?: TrialSort;
}

export interface NewSearch {
  from?: string; // "example", or the id of an earlier sweep
}

type Raw = Record<string, unknown>;

export function parseSweepsSearch(raw: Raw): SweepsSearch {
  const state = among(raw.state, sweepStates);

  return state.length > 0 ? { state } : {};
}

export function parseSweepSearch(raw: Raw): SweepSearch {
  const state = among(raw.state, trialStates);
  const [tab] = among<SweepTab>(raw.tab, ["report", "spec"]);
  const [sort] = among<TrialSort>(raw.sort, ["-number", "best"]);

  return { ...(tab && { tab }), ...(sort && { sort }), ...(state.length > 0 && { state }) };
}

export function parseNewSearch(raw: Raw): NewSearch {
  return typeof raw.from === "string" && raw.from !== "" ? { from: raw.from } : {};
}

function among<T extends string>(raw: unknown, known: T[]): T[] {
  const asked = Array.isArray(raw) ? raw : typeof raw === "string" ? raw.split(",") : [];

  return known.filter((word) => asked.includes(word));
}
