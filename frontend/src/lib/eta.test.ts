import { expect, it } from "vitest";
import { etaText } from "@/lib/eta";
import { range } from "@/lib/format";
import { endedSweep, newSweep, sweep } from "@/test/factories/sweep";

const eta = { min_seconds: 240, max_seconds: 372, why: "figures" };
const counts = sweep().counts;

it.each([
  ["a range", sweep({ eta }), "4 min to 6 min 12 s"],
  ["too few ended", sweep(), "not known until 3 trials have ended"],
  ["none runs", sweep({ counts: { ...counts, running: 0 } }), "not known while no trial runs"],
  ["no end in sight", sweep({ counts: { ...counts, planned: 0 } }), "not known: the number of trials is open"],
  ["paused", sweep({ state: "paused" }), "not known while it is paused"],
  ["starting", newSweep(), undefined],
  ["stopping", sweep({ state: "stopping" }), undefined],
  ["ended", endedSweep("succeeded"), undefined],
])("of a sweep: %s", (_, one, text) => expect(etaText(one)).toBe(text));

it.each([
  [0, 40, "at most 40 s"],
  [59.8, 60.2, "about 1 min"],
  [3, 8, "3 s to 8 s"],
  [3600, 7260, "1 h to 2 h 1 min"],
])("writes %d to %d seconds", (min, max, text) => expect(range(min, max)).toBe(text));
