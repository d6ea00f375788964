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
    expect(second).toEqual({ name: "same", score: 0, share: 0, trials: 20 });
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

  // A grid of 4 x 10: trial 1 to 10 have lr 1, 11 to 20 lr 2, ...
  const grid = (value: (i: number) => number) =>
    scored(
      Array.from({ length: 40 }, (_, i) =>
        trial({ number: i + 1, value: value(i), params: { lr: Math.floor(i / 10) + 1, width: i % 10 } }),
      ),
    );

  it("are 0 where all values are equal, in whatever order a grid was walked", () => {
    for (const goal of ["maximize", "minimize"] as const)
      expect(importances(grid(() => 1), goal, ["lr", "width"]).map((one) => one.score)).toEqual([0, 0]); // prettier-ignore
  });

  it("do not let the number of a trial decide among those with the same value", () => {
    // 30 of 40 reach 1, a quarter of the values of lr each but the last: lr = 1, 2 and 3 are equally good. Each of
    // the 30 has a third of a place: 3 * (1/3 - 1/4)^2 / (1/4) + 1/4 = 1/3. By chance 3/100 * (40 * 10/3 - 100)/39
    // = 1/39; the score is 12/39.
    const list = grid((i) => (i < 30 ? 1 : 0));
    const turned = scored(list.map((row) => ({ ...row, number: 41 - row.number })));
    for (const one of [list, turned]) expect(importances(one, "maximize", ["lr"])[0]?.score).toBeCloseTo(12 / 39, 12);
  });

  it("of a parameter that some trials have are about those alone", () => {
    // momentum exists for sgd alone, and has no effect; opt decides.
    const list = scored(
      Array.from({ length: 400 }, (_, i) => {
        const sgd = i % 2 === 0;
        const noise = ((i * 7919) % 101) / 1000;

        return trial({
          number: i + 1,
          value: (sgd ? 1 : 0) + noise,
          params: sgd ? { opt: "sgd", momentum: ((i * 104729) % 997) / 997 } : { opt: "adam" },
        });
      }),
    );
    const [first, second] = importances(list, "maximize", ["opt", "momentum"]);
    expect(first?.name).toBe("opt");
    expect(second?.share).toBeLessThan(0.2);
    expect(second?.trials).toBe(200);
  });

  it("are 0 for a parameter that too few trials have", () => {
    const list = rows((i) => (i >= 20 ? { rare: i % 2 } : { opt: "b" }), 39);
    expect(importances(list, "maximize", ["rare"])).toEqual([{ name: "rare", score: 0, share: 0, trials: 19 }]);
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
