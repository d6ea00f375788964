import { expect, it } from "vitest";
import { decimal, duration } from "@/lib/format";
import { marksOf, ticks, type Unit } from "@/plots/axisMarks";

const marks = (from: number, incr: number, n = 6) =>
  Array.from({ length: n }, (_, i) => Number((from + i * incr).toFixed(12)));

it.each<[Unit, number, number, string, string]>([
  ["number", 0.6931466, 2e-7, "0.6931466", "0.6931476"],
  ["number", 250_000.02, 0.02, "250,000.02", "250,000.12"],
  ["number", 123_456.25, 0.25, "123,456.25", "123,457.5"],
  ["number", 1_234_567_890, 0.5, "1,234,567,890", "1,234,567,892.5"],
  ["number", 0.0000123456, 2e-10, "1.23456e-5", "1.23466e-5"],
  ["number", -0.6931476, 2e-7, "-0.6931476", "-0.6931466"],
  ["seconds", 3600, 1, "1 h", "1 h 5 s"],
  ["seconds", 3655, 5, "1 h 55 s", "1 h 1 min 20 s"],
  ["seconds", 93_600, 1800, "1 d 2 h", "1 d 4 h 30 min"],
])("tells the marks of %s from %d on, %d apart", (unit, from, incr, first, last) => {
  const texts = marksOf(unit, marks(from, incr), incr);
  expect([texts[0], texts.at(-1)]).toEqual([first, last]);
  expect(new Set(texts).size).toBe(texts.length);
});

it("tells the marks of a clock apart that are less than a minute apart", () => {
  const noon = Date.UTC(2026, 0, 7, 12) / 1000;
  const texts = marksOf("clock", marks(noon, 15), 15);
  expect(texts[1]).toMatch(/:\d\d:15$/);
  expect(new Set(texts).size).toBe(texts.length);
  expect(marksOf("clock", [noon], 60)[0]).toMatch(/^\w+,? \d\d:\d\d$/);
});

it.each([1e-30, 1e-12, 2e-7, 2.5e-5, 0.001, 0.05, 0.25, 1, 25, 2e4, 5e8, 1e16])(
  "writes marks %d apart as values",
  (incr) => {
    const some = [-3, 0, 1, 2, 3, 20].map((n) => Number((n * incr).toPrecision(12)));
    expect(marksOf("number", some, incr)).toEqual(some.map(decimal));
  },
);

it("writes marks of whole times as durations", () => {
  for (const incr of ticks.seconds ?? []) {
    const some = marks(incr, incr, 5);
    expect(marksOf("seconds", [0, ...some], incr)).toEqual(["0 s", ...some.map(duration)]);
  }
});
