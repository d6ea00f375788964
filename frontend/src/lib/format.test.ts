import { describe, expect, it } from "vitest";
import { ago, bytes, cores, count, decimal, duration, percent, value, shortValue } from "@/lib/format";

const MiB = 1024 * 1024;

describe("format", () => {
  it.each([
    [0, "0 MiB"],
    [910 * MiB, "910 MiB"],
    [1.5 * MiB, "1.5 MiB"],
    [2048 * MiB, "2,048 MiB"],
    [140_000 * MiB, "136.7 GiB"],
  ])("writes %d bytes as %s", (n, text) => expect(bytes(n)).toBe(text));

  it.each([
    [0.02, "20 ms"],
    [3.24, "3.2 s"],
    [75, "1 min 15 s"],
    [7260, "2 h 1 min"],
    [90_000, "1 d 1 h"],
  ])("writes %d seconds as %s", (n, text) => expect(duration(n)).toBe(text));

  it.each([
    [1000, "1 core"],
    [1500, "1.5 cores"],
    [670, "0.67 cores"],
  ])("writes %d thousandths as %s", (n, text) => expect(cores(n)).toBe(text));

  it("writes numbers without noise", () => {
    expect(decimal(0.9833333333)).toBe("0.983333");
    expect(decimal(0.00001234)).toBe("1.234e-5");
    expect(decimal(12_000)).toBe("12,000");
    expect([123_456.2, 123_456.62, 999_999.7, -250_000.04].map(decimal)).toEqual([
      "123,456.2",
      "123,456.6",
      "999,999.7",
      "-250,000",
    ]);
    expect(percent(0.035)).toBe("3.5 %");
    expect(count(1, "trial")).toBe("1 trial");
    expect(count(2400, "trial")).toBe("2,400 trials");
    expect(value("adam")).toBe("adam");
    expect(value(true)).toBe("true");
  });

  it("says how long ago, with one unit", () => {
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:34:00Z"))).toBe("2 h ago");
    expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:01Z"))).toBe("just now");
  });
});

it("shortens values for tables, not whole numbers and texts", () => {
  expect(shortValue(0.00123456789)).toBe("0.00123457");
  expect(shortValue(4096)).toBe("4096");
  expect(shortValue("adam")).toBe("adam");
  expect(shortValue(undefined)).toBe("–");
});
