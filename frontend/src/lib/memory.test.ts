import { expect, it } from "vitest";
import { held } from "@/lib/memory";
import { memory, point } from "@/test/factories/trial";

it("is by second since the start, what was not measured is null", () => {
  const rows = held(
    memory([point(0, { host_bytes: 5 }), point(1, { device_bytes: 7, sm_activity: 0.5 })]),
    "2026-01-01T00:00:02Z",
  );
  expect(rows).toEqual([
    { second: 0, host: 5, device: null, sm: null },
    { second: 1, host: null, device: 7, sm: 0.5 },
  ]);
});

it("has an empty interval in a gap, and none between neighbours", () => {
  const points = [0, 4, 8, 20, 24].map((second) => point(second, { host_bytes: 1 }));
  const rows = held(memory(points, { interval_seconds: 4 }), "2026-01-01T00:00:02Z");
  expect(rows.map((row) => [row.second, row.host])).toEqual([
    [0, 1],
    [4, 1],
    [8, 1],
    [12, null],
    [20, 1],
    [24, 1],
  ]);
});
