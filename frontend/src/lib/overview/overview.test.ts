import { describe, expect, it } from "vitest";
import { axesOf, inside, place } from "@/lib/overview/axes";
import { history, within } from "@/lib/overview/history";
import { lanes } from "@/lib/overview/lanes";
import { sample, scored } from "@/lib/overview/sample";
import { readNumbers, toggled, writeNumbers } from "@/lib/overview/selection";
import { attempt, failedTrial, outOfMemoryAttempt, runningAttempt, runningTrial, trial } from "@/test/factories/trial";

describe("selection", () => {
  it("is read and written as numbers and ranges", () => {
    expect(readNumbers("5-7,2,x,2,9-8,")).toEqual([2, 5, 6, 7]);
    expect(writeNumbers([7, 2, 5, 6, 6])).toBe("2,5-7");
    expect(readNumbers("1-9999999")).toHaveLength(500);
    expect(writeNumbers([])).toBe("");
    expect(toggled(new Set([1, 2]), 2)).toEqual([1]);
    expect(toggled(new Set([1]), 2)).toEqual([1, 2]);
    const full = new Set(readNumbers("1-500"));
    expect(toggled(full, 501)).toEqual([...full]);
    expect(toggled(full, 500)).toHaveLength(499);
  });
});

describe("history", () => {
  const rows = [
    trial({ number: 4, value: 0.7 }),
    trial({ number: 1, value: 0.5 }),
    { ...failedTrial(), number: 2, value: 0.99 },
    trial({ number: 3, value: 0.9 }),
    { ...runningTrial(), number: 5 },
  ];

  it("keeps failed trials out of the best so far", () => {
    expect(history(rows, "maximize")).toEqual({
      goal: "maximize",
      done: [
        [1, 0.5],
        [3, 0.9],
        [4, 0.7],
      ],
      best: [
        [1, 0.5],
        [3, 0.9],
        [4, 0.9],
      ],
      failed: [2],
      running: [[5, 0.8]],
    });
    expect(history(rows, "minimize").best).toEqual([
      [1, 0.5],
      [4, 0.5],
    ]);
  });

  it("does not call a trial running that waits for its next attempt", () => {
    const waits = { ...runningTrial(), number: 7, state: "waiting" as const, attempts: 1 };
    expect(history([waits], "maximize").running).toEqual([]);
  });

  it("finds the trials in a rectangle, whichever corner came first", () => {
    expect(
      within(
        [
          [1, 0.5, 1],
          [3, 0.9, 3],
        ],
        [4, 2],
        [1, 0],
      ),
    ).toEqual([3]);
  });
});

describe("axes", () => {
  const rows = [
    trial({ number: 1, params: { lr: 0.1, opt: "sgd", same: 1, width: 8, deep: true } }),
    trial({ number: 2, params: { lr: 0.001, opt: "adam", same: 1, width: 16 } }),
    trial({ number: 3, params: { lr: 0.01, opt: "adam", same: 1, width: 8, deep: false } }),
  ];
  const spec = {
    parameters: [
      { name: "lr", log: true },
      { name: "opt", values: ["adam", "rmsprop", "sgd"] },
      { name: "width", values: [8, 16] },
    ],
  };

  it("are numbers, log where the file says so, or choices in its order; a constant has none", () => {
    expect(axesOf(rows, spec)).toEqual([
      { name: "lr", log: true },
      { name: "opt", log: false, labels: ["adam", "sgd"] },
      { name: "width", log: false, labels: ["8", "16"] },
      { name: "deep", log: false, labels: ["false", "true"] },
    ]);
    expect(axesOf([trial({ params: { lr: 0 } }), trial({ params: { lr: 1 } })], spec)[0]?.log).toBe(false);
  });

  it("place values, and leave out what a trial does not have", () => {
    const [lr, opt, , deep] = axesOf(rows, spec);
    const at = (i: number) => rows[i] ?? trial();
    expect(lr && place(lr, at(1))).toBe(0.001);
    expect(opt && place(opt, at(0))).toBe(1);
    expect(deep && place(deep, at(1))).toBeUndefined();
  });

  it("choose what is in every drawn range", () => {
    const axes = axesOf(rows, spec);
    const ranges = new Map<number, [number, number][]>([
      [0, [[0.2, 0.005]]],
      [1, []],
      [4, [[0, 1]]],
    ]);
    expect(rows.filter((row) => inside(axes, ranges, row, 0.5)).map((row) => row.number)).toEqual([1, 3]);
    expect(rows.filter((row) => inside(axes, ranges, row, 2))).toEqual([]);
  });
});

describe("sample", () => {
  const rows = scored(Array.from({ length: 100 }, (_, i) => trial({ number: i + 1, value: i })));

  it("keeps the best half and spreads the rest, the best on top", () => {
    const kept = sample(rows, "maximize", 20);
    expect(kept).toHaveLength(20);
    expect(kept.at(-1)?.value).toBe(99);
    expect(kept.slice(10).map((one) => one.value)).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
    expect(kept[0]?.value).toBe(8);
    expect(new Set(kept.map((one) => one.number)).size).toBe(20);
  });

  it("keeps all when they are few", () => expect(sample(rows, "minimize")).toHaveLength(100));
});

describe("lanes", () => {
  const now = Date.parse("2026-01-01T00:01:00Z");

  it("are one for each host and GPU, with rows for what ran at once", () => {
    const list = [
      attempt({ trial_number: 1 }),
      { ...outOfMemoryAttempt(), trial_number: 2, started_at: "2026-01-01T00:00:10Z" },
      { ...runningAttempt(), trial_number: 3, started_at: "2026-01-01T00:00:30Z" },
      attempt({ trial_number: 4, device_id: "GPU-1" }),
    ];
    const { bars, rows } = lanes(list, new Map([["h1", "box"]]), now);
    expect(rows).toEqual(["box", "", "box, GPU-1"]);
    expect(bars.map(({ trial: n, row, look }) => [n, row, look])).toEqual([
      [1, 0, "done"],
      [2, 1, "failed"],
      [3, 0, "running"],
      [4, 2, "done"],
    ]);
    expect(bars[1]?.text).toBe("Out of memory on its machine");
    expect(bars[2]?.to).toBe(now);
  });

  it("tell an attempt that was repeated with more memory from one that failed for good", () => {
    const tried = { ...outOfMemoryAttempt(), trial_number: 2, number: 1 };
    const { bars } = lanes([tried, attempt({ trial_number: 2, number: 2 })], new Map(), now);
    expect(bars.map(({ look, text }) => [look, text])).toContainEqual([
      "repeated",
      "Out of memory, repeated with more",
    ]);
    expect(lanes([tried], new Map(), now).bars[0]?.look).toBe("failed");
  });

  it("tell simulated GPUs of one machine apart", () => {
    // internal/agent/simgpu/spec.go: all ids begin with GPU-51500000.
    const on = (id: string) => attempt({ trial_number: 1, device_id: id });
    const { rows } = lanes(
      [on("GPU-51500000-1b2c-3d4e-5f60-000000000000"), on("GPU-51500000-1b2c-3d4e-5f60-000000000001")],
      new Map([["h1", "box"]]),
      now,
    );
    expect(rows).toEqual(["box, GPU-5150…0000", "box, GPU-5150…0001"]);
  });

  it("call a pruned attempt stopped early, not canceled", () => {
    const { bars } = lanes([attempt({ trial_number: 1, failure_kind: "pruned" })], new Map(), now);
    expect(bars[0]?.text).toBe("Stopped early");
  });
});
