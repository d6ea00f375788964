import type { Insight } from "@/services/overview";

/** The insight of 40 trials of which early stopping judged none. */
export function insight(change: Partial<Insight> = {}): Insight {
  return {
    trials: 40,
    from_trial: 1,
    importance: [
      { parameter: "lr", importance: 0.75, trials: 40 },
      { parameter: "batch", importance: 0.25, trials: 40 },
    ],
    importance_of: { trials: 40, top_share: 0.25 },
    best: [{ trial: 1, value: 0.95, at: "2026-01-01T00:00:25Z" }],
    rungs: [],
    origins: [{ by: "random", trials: 40 }],
    ...change,
  };
}
