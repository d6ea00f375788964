import type uPlot from "uplot";
import { expect, it, vi } from "vitest";
import { linePlot } from "@/plots/linePlot";

let made: uPlot.Options | undefined;
vi.mock("uplot", () => ({
  default: vi.fn(function (options: uPlot.Options) {
    made = options;
  }),
}));

function axes() {
  linePlot(document.body, [[1], [1]], false, { height: 200, x: "seconds", y: "number", lines: [{}] });

  return made?.axes ?? [];
}

const call = (option: unknown, ...args: unknown[]) => (option as (...args: unknown[]) => unknown)(undefined, ...args);

it("gives the marks of its axes the digits that tell them apart", () => {
  const [x, y] = axes();
  expect(call(x?.values, [3601, 3602], 0, 60, 1)).toEqual(["1 h 1 s", "1 h 2 s"]);
  expect(call(y?.values, [0.6931466, 0.6931468], 1, 30, 2e-7)).toEqual(["0.6931466", "0.6931468"]);
});

it("has room for long marks", () => {
  const [x, y] = axes();
  expect(call(y?.size, null, 1, 0)).toBe(76);
  expect(call(y?.size, ["123,456.5"], 1, 0)).toBe(76);
  expect(call(y?.size, ["1,234,567,890.5"], 1, 0)).toBeGreaterThan(110);
  expect(call(x?.space, 0, 0, 7200)).toBe(50);
  expect(call(x?.space, 0, 7000, 7200)).toBe(110);
});
