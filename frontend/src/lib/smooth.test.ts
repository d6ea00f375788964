import { expect, it } from "vitest";
import { smoothed } from "@/lib/smooth";

it("averages with the weight of the average so far", () => {
  expect(smoothed([1, 3, 5], 0)).toEqual([1, 3, 5]);
  expect(smoothed([4, 4, 4], 0.9)).toEqual([4, 4, 4].map((n) => expect.closeTo(n) as number));
  expect(smoothed([1, 4], 0.5)).toEqual([1, expect.closeTo(3)]); // (0.25 * 1 + 0.5 * 4) / 0.75
});
