import { describe, expect, it } from "vitest";
import { startText } from "@/lib/start";

describe("startText", () => {
  it.each([
    [{ min_seconds: 0, max_seconds: 0 }, "Now"],
    [{ min_seconds: 0, max_seconds: 240 }, "Within 4 min"],
    [{ min_seconds: 120, max_seconds: 300 }, "In 2 min to 5 min"],
    [{ min_seconds: 120, max_seconds: 120.2 }, "In about 2 min"],
    [{ unknown: "duration_unknown" }, "Not known until 3 trials of what runs or comes before it have ended"],
    [{ unknown: "nothing_fits" }, "Never: no machine could hold it, even an empty one"],
  ] as const)("writes %o", (start, text) => {
    expect(startText(start)).toBe(text);
  });
});
