import { describe, expect, it } from "vitest";
import { grouping, importances } from "@/lib/overview/importance";
import { scored } from "@/lib/overview/sample";
import { trial } from "@/test/factories/trial";

const rows = (params: (i: number) => Record<string, unknown>, n = 20) =>
  scored(Array.from({ length: n }, (_, i) => trial({ number: i + 1, value: i, params: params(i) })));

describe("importances", () => {
  it("agree with a sum by hand", () => {
    // n = 20, m = 5. opt: a is 10 of 20 and 5 of the best 5: (1 - 1/2)^2 / (1/2) + (0 - 1/2)^2 / (1/2) = 1.
    // By chance 1/5 * 15/19 = 3/19; the score is 16/19.
    const [first, second] = importances(
      rows((i) => ({ opt: i >= 10 ? "a" : "b", same: 1 })),
      "maximize",
      ["opt", "same"],
    );
    expect(first?.name).toBe("opt");
    expect(first?.score).toBeCloseTo(16 / 19, 12);
    expect(first?.share).toBe(1);
    expect(second).toEqual({ name: "same", score: 0, share: 0 });
  });

  it("see a best value in the middle, which a rank correlation does not", () => {
    // 20 values of x in 4 groups of 5, the best 5 all in the second: (1 - 1/4)^2 / (1/4) + 3 * (1/4)^2 / (1/4) = 3.
    // By chance 3/5 * 15/19 = 9/19; the score is 48/19.
    const list = scored(
      Array.from({ length: 20 }, (_, i) => trial({ number: i + 1, value: -Math.abs(i - 7), params: { x: i } })),
    );
    expect(importances(list, "maximize", ["x"])[0]?.score).toBeCloseTo(48 / 19, 12);
  });

  it("are 0 where the best have the same values as all", () => {
    expect(
      importances(
        rows((i) => ({ x: i % 5 < 3 ? "a" : "b" })),
        "maximize",
        ["x"],
      )[0]?.score,
    ).toBe(0);
    expect(importances([], "minimize", ["x"])).toEqual([]);
  });

  it("turn with the goal", () => {
    const list = rows((i) => ({ opt: i < 5 ? "low" : "rest", end: i >= 15 ? "high" : "rest" }));
    expect(importances(list, "minimize", ["opt", "end"])[0]?.name).toBe("opt");
    expect(importances(list, "maximize", ["opt", "end"])[0]?.name).toBe("end");
  });
});

describe("grouping", () => {
  it("puts numbers in four groups, and equal ones together", () => {
    expect(grouping([8, 1, 2, 3, 4, 5, 6, 7])).toEqual(["3", "0", "0", "1", "1", "2", "2", "3"]);
    expect(grouping([1, 1, 1, 1, 2, 3, 4, 5])).toEqual(["0", "0", "0", "0", "2", "2", "3", "3"]);
  });

  it("keeps few numbers, choices and missing values as they are", () => {
    expect(grouping([32, 64, 32])).toEqual(["32", "64", "32"]);
    expect(grouping(["adam", undefined, true])).toEqual(["adam", "", "true"]);
  });
});
