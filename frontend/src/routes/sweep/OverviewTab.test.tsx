import { act, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MantineProvider } from "@mantine/core";
import type { Line } from "@/plots/CurvesChart";
import { TrialCharts } from "@/routes/sweep/TrialCharts";
import { drawApp, type Answers } from "@/test/app";
import { insight } from "@/test/factories/insight";
import { endedSweep, report, sweep, tradeSweep } from "@/test/factories/sweep";
import { attempt, brokenTrial, trial } from "@/test/factories/trial";

type Drawn = {
  label: string;
  onAxis?: (axis: number, ranges: [number, number][]) => void;
  onPick?: (trial: number) => void;
  onRectangle?: (x: [number, number], y: [number, number]) => void;
};
const drawn = new Map<string, Drawn>();
vi.mock("@/plots/EChart", () => ({
  default: (props: Drawn) => {
    drawn.set(props.label.split(" ")[0] ?? "", props);

    return <div role="img" aria-label={props.label} />;
  },
}));
const curves = vi.hoisted(() => ({ lines: [] as Line[] }));
vi.mock("@/plots/CurvesChart", () => ({
  default: ({ lines }: { lines: Line[] }) => {
    curves.lines = lines;

    return <div role="img" aria-label="curves" />;
  },
}));

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.unstubAllGlobals());

const id = sweep().id;
const two = [
  trial({ number: 1, value: 0.5, params: { lr: 0.1 } }),
  trial({ number: 2, value: 0.9, params: { lr: 0.2 } }),
];
const names = { data: [{ name: "loss", trials: 2, last_step: 3 }, { name: "val_accuracy", trials: 2, last_step: 3 }] }; // prettier-ignore
function found(): Answers {
  return {
    [`GET /sweeps/${id}`]: [200, sweep()],
    [`GET /sweeps/${id}/trials`]: [200, { data: two, total: 2 }],
    [`GET /sweeps/${id}/metric-names`]: [200, names],
    [`GET /sweeps/${id}/metrics`]: [200, { data: [], name: "loss" }],
    [`GET /sweeps/${id}/insight`]: [200, insight()],
    [`GET /sweeps/${id}/attempts`]: [200, { data: [attempt({ trial_number: 1 })] }],
    "GET /hosts": [200, { data: [] }],
  };
}

async function pickLoss() {
  const select = await screen.findByRole<HTMLSelectElement>("combobox", { name: "Metric" });
  await waitFor(() => expect(select.options.length).toBe(2));
  await userEvent.selectOptions(select, "loss");
  expect(select.value).toBe("loss");
}

it("keeps the picked metric in the address", async () => {
  const { router } = await drawApp(`/sweeps/${id}?tab=overview`, found());
  await pickLoss();
  expect(router.state.location.search).toEqual({ tab: "overview", metric: "loss" });
});

it("shows the metric that the address names, also before the newest trials have reported it", async () => {
  const answers = found();
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview&metric=loss`, answers);
  const select = await screen.findByRole<HTMLSelectElement>("combobox", { name: "Metric" });
  await waitFor(() => expect(select.value).toBe("loss"));
  answers[`GET /sweeps/${id}/metric-names`] = [200, { data: [{ name: "acc", trials: 1, last_step: 1 }] }];
  await act(() => queries.invalidateQueries({ queryKey: ["overview", id, "metric-names"] }));
  await screen.findByRole("option", { name: "acc" });
  expect(select.value).toBe("loss");
  expect(screen.getByText("None of these trials has reported it yet.")).toBeTruthy();
});

it("keeps the charts and what was picked when they cannot be read again", async () => {
  const answers = found();
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview`, answers);
  await pickLoss();
  answers[`GET /sweeps/${id}/trials`] = [403, { detail: "Not now." }];
  await act(() => queries.invalidateQueries({ queryKey: ["overview", id, "trials"] }));
  expect(await screen.findByText(/Not now/)).toBeTruthy();
  expect(screen.queryByRole("combobox", { name: "Metric" })).toBeTruthy();
});

it("keeps the timeline when it cannot be read again", async () => {
  const answers = found();
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview`, answers);
  await screen.findByRole("region", { name: "Where and when" });
  answers[`GET /sweeps/${id}/attempts`] = [403, { detail: "Not now." }];
  await act(() => queries.invalidateQueries({ queryKey: ["overview", id, "attempts"] }));
  expect(await screen.findByText(/Not now/)).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Where and when" })).toBeTruthy();
});

it("keeps what was picked when the sweep ends", async () => {
  const answers = found();
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview`, answers);
  await pickLoss();
  answers[`GET /sweeps/${id}`] = [200, endedSweep("succeeded", { id })];
  await act(() => queries.invalidateQueries({ queryKey: ["sweep", id] }));
  await screen.findByText("Succeeded");
  const select = await screen.findByRole<HTMLSelectElement>("combobox", { name: "Metric" });
  await waitFor(() => expect(select.options.length).toBe(2));
  expect(select.value).toBe("loss");
});

it("reads the names of metrics again when asked to", async () => {
  const answers = found();
  answers[`GET /sweeps/${id}`] = [200, endedSweep("succeeded", { id })]; // one that goes on is read again by itself
  answers[`GET /sweeps/${id}/metric-names`] = [403, { detail: "Not now." }];
  const { asked } = await drawApp(`/sweeps/${id}?tab=overview`, answers);
  const card = await screen.findByRole("region", { name: "While they ran" });
  await within(card).findByText(/Not now/);
  answers[`GET /sweeps/${id}/metric-names`] = [200, names];
  const before = asked.filter((one) => one.call.endsWith("/metric-names")).length;
  await userEvent.click(within(card).getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(asked.filter((one) => one.call.endsWith("/metric-names")).length).toBeGreaterThan(before));
});

const curve = (n: number, change = {}) => ({
  trial: n,
  state: "succeeded",
  attempt_id: "a",
  total: 1,
  not_finite: 0,
  steps: [1],
  values: [0.5],
  ...change,
});

it.each([
  ["&trials=1-2", {}, [curve(1), curve(2, { total: 0, steps: [], values: [] })], "Of 2 chosen trials 1 reported it. trial 1"],
  ["&trials=1-2", { best: { trial: 2, value: 1, params: {} } }, [curve(1), curve(2)], "Of 2 chosen trials 2 reported it. trial 1trial 2"],
  ["", { objective: undefined, best: undefined }, [curve(1)], "1 trial: the first 50 that ended, and the first 50 that run."],
])("says whose curves they are: %s %j", async (chosen, change, data, says) => {
  await drawApp(`/sweeps/${id}?tab=overview${chosen}`, {
    ...found(),
    [`GET /sweeps/${id}`]: [200, sweep(change)],
    [`GET /sweeps/${id}/metrics`]: [200, { data, name: "loss" }],
  });
  const card = await screen.findByRole("region", { name: "While they ran" });
  await waitFor(() => expect(card.querySelector(".chartnote")?.textContent.replaceAll(/\s+/g, " ").trim()).toBe(says));
}); // prettier-ignore

it("says in a trial's row that it diverged, and offers the objective before a trial has reported it", async () => {
  const diverged = curve(1, { steps: [1, 2], values: [0.9, 0.31], total: 2, not_finite: 98, first_not_finite_step: 3 });
  await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}/metric-names`]: [200, { data: [{ name: "loss", trials: 2, last_step: 3 }] }],
    [`GET /sweeps/${id}/metrics`]: [200, { data: [diverged], name: "val_accuracy" }],
  });
  const card = await screen.findByRole("region", { name: "While they ran" });
  await waitFor(() =>
    expect(within(card).getByRole<HTMLSelectElement>("combobox", { name: "Metric" }).value).toBe("val_accuracy"),
  );
  await userEvent.click(await within(card).findByText("View as table"));
  expect(within(await within(card).findByRole("table")).getByText("98, from step 3")).toBeTruthy();
});

it("gives each chosen trial a look of its own, and smooths and takes logarithms on request", async () => {
  const data = [curve(1, { steps: [1, 2], values: [1, 4] }), curve(2, { steps: [1, 2], values: [0, 2] }), curve(3)];
  await drawApp(`/sweeps/${id}?tab=overview&trials=1-2`, {
    ...found(),
    [`GET /sweeps/${id}/metrics`]: [200, { data, name: "val_accuracy" }],
  });
  const card = await screen.findByRole("region", { name: "While they ran" });
  const line = (trial: number) => curves.lines.find((one) => one.trial === trial);
  await waitFor(() => expect(line(1)?.values).toEqual([1, 4]));
  expect(new Set([1, 2, 3].map((n) => line(n)?.color)).size).toBe(2); // the third is as pale as the first is blue
  expect([1, 2, 3].map((n) => line(n)?.strong)).toEqual([true, true, false]);
  await userEvent.selectOptions(within(card).getByRole("combobox", { name: "Smoothing" }), "0.6");
  await waitFor(() => expect(line(1)?.values[1]).toBeCloseTo(2.875)); // (0.24 * 1 + 0.4 * 4) / 0.64
  expect(line(1)?.reported).toEqual([1, 4]);
  await userEvent.click(within(card).getByRole("switch", { name: "Log axis" }));
  await waitFor(() => expect(line(2)?.steps).toEqual([2]));
  expect(within(card).getByText(/Values of 0 and less are not drawn/)).toBeTruthy();
});

const silent = { total: 0, steps: [], values: [] };
const diverges = curve(1, { ...silent, state: "failed", not_finite: 9, first_not_finite_step: 1 });

it.each([
  ["reported what is not finite", sweep(), { data: [diverges] }, "", "1 trial reported values that are not finite"],
  ["may report yet", sweep(), { data: [curve(1, silent)] }, "None of these trials has reported it yet.", "1 trial"],
  ["reported nothing", endedSweep("failed", { id }), { data: [curve(1, silent)] }, "None of these trials reported it.", "1 trial"],
])("says of trials that have no curves what is so: they %s", async (_, shown, metrics, says, notes) => {
  await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}`]: [200, shown],
    [`GET /sweeps/${id}/metrics`]: [200, { ...metrics, name: "val_accuracy" }],
  });
  const card = await screen.findByRole("region", { name: "While they ran" });
  await waitFor(() => expect(card.querySelector(".chartnote")?.textContent).toContain(notes));
  expect(within(card).queryByText(/^None of/)?.textContent ?? "").toBe(says);
}); // prettier-ignore

it("keeps the curves of others while the newest trials have reported nothing, and of chosen ones says so", async () => {
  const { router, queries } = await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}/metric-names`]: [200, { data: [] }],
    [`GET /sweeps/${id}/metrics`]: [200, { data: [curve(1)], name: "val_accuracy" }],
  });
  await screen.findByRole("img", { name: "curves" });
  const card = screen.getByRole("region", { name: "While they ran" });
  expect(within(card).getByRole<HTMLSelectElement>("combobox", { name: "Metric" }).value).toBe("val_accuracy");
  queries.setQueryData(["overview", id, "curves", "val_accuracy", "9", false], {
    data: [curve(9, silent)],
    name: "val_accuracy",
  });
  await act(() => router.navigate({ to: ".", search: { tab: "overview", trials: "9" } }));
  expect(await within(card).findByText(/^None of these/)).toBeTruthy();
});

it.each([
  ["with an objective", sweep(), [curve(1, silent)]],
  ["without an objective", sweep({ objective: undefined, best: undefined }), [curve(1)]],
])("has no card of curves before anything was reported, %s", async (_, shown, data) => {
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}`]: [200, shown],
    [`GET /sweeps/${id}/metric-names`]: [200, { data: [] }],
    [`GET /sweeps/${id}/metrics`]: [200, { data, name: "val_accuracy" }],
  });
  await screen.findByRole("region", { name: "Where and when" });
  await waitFor(() => expect(queries.isFetching()).toBe(0));
  expect(screen.queryByRole("region", { name: "While they ran" })).toBeNull();
});

const choose = vi.fn();
const chosen = { text: "", set: new Set<number>(), choose, toggle: vi.fn() };
const charts = (trials: typeof two, part = false) => (
  <MantineProvider env="test">
    <TrialCharts cleared={0} sweep={sweep()} trials={trials} part={part} chosen={chosen} dark={false} />
  </MantineProvider>
);

it("does not choose by a range that is no longer drawn", async () => {
  const a = [
    trial({ number: 1, value: 1, params: { lr: 0.1, width: 8 } }),
    trial({ number: 2, value: 2, params: { lr: 0.2, width: 8 } }),
  ];
  const { rerender } = render(charts(a));
  await screen.findByRole("img", { name: /^Parallel coordinates of 2 trials over lr and/ });
  act(() => drawn.get("Parallel")?.onAxis?.(0, [[0.15, 0.25]]));
  expect(choose).toHaveBeenLastCalledWith([2]);
  // The third trial has another width: there is an axis more, and a new chart replaces the drawn one.
  rerender(charts([...a, trial({ number: 3, value: 3, params: { lr: 0.01, width: 16 } })]));
  await screen.findByRole("img", { name: /^Parallel coordinates of 3 trials over lr, width and/ });
  act(() => drawn.get("Parallel")?.onAxis?.(1, [[7, 20]]));
  expect(choose).toHaveBeenLastCalledWith([1, 2, 3]); // all have such a width; no range is drawn on lr
});

it("says which trials are counted", async () => {
  const { rerender } = render(charts(two));
  expect(screen.queryByText(/Counts are of/)).toBeNull();
  rerender(charts(two, true));
  expect(screen.getByText(/Counts are of the 2 trials that are shown/)).toBeTruthy();
  expect(await screen.findByRole("img", { name: /0 running of the 2 that are shown/ })).toBeTruthy();
});

it("shows what the server says of the trials, and early stopping where it judged any", async () => {
  const answers = found();
  const { queries } = await drawApp(`/sweeps/${id}?tab=overview`, answers);
  expect(await screen.findByRole("table", { name: "Importance of parameters" })).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Early stopping" })).toBeNull();
  const rungs = [
    { rung: 0, step: 3, last_step: 4, trials: 1200, stopped: 800, best: 0.9, cut: 0.7 },
    { rung: 1, step: 9, last_step: 9, trials: 1, stopped: 0 },
  ];
  answers[`GET /sweeps/${id}/insight`] = [200, insight({ rungs, importance_of: { trials: 1, top_share: 0.25 } })];
  await act(() => queries.invalidateQueries({ queryKey: ["overview", id, "insight"] }));
  const card = await screen.findByRole("region", { name: "Early stopping" });
  expect(within(card).getAllByRole("row").slice(1).map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
    ["3 to 4", "1,200", "800", "0.9", "0.7"],
    ["9", "1", "0", "–", "–"],
  ]); // prettier-ignore
  expect(screen.queryByRole("region", { name: "Importance of parameters" })).toBeNull();
  answers[`GET /sweeps/${id}/insight`] = [403, { detail: "Not now." }];
  await act(() => queries.invalidateQueries({ queryKey: ["overview", id, "insight"] }));
  expect(await screen.findByText(/Not now/)).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Early stopping" })).toBeTruthy();
});

const rows = [
  trial({ number: 1, value: 0.95, results: { acc: 0.95, ms: 18, mb: 5 } }),
  trial({ number: 2, value: 0.9, results: { acc: 0.9, ms: 12, mb: 4 } }),
  trial({ number: 3, value: 0.8, results: { acc: 0.8, ms: 19, mb: 9 } }),
  { ...brokenTrial(), number: 4 },
];
const front = rows.slice(0, 2).map(({ number, results = {} }) => ({ trial: number, results }));

async function trades(change = {}) {
  const { router } = await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}`]: [200, tradeSweep(change)],
    [`GET /sweeps/${id}/trials`]: [200, { data: rows, total: 4 }],
    [`GET /sweeps/${id}/insight`]: [200, insight({ front })],
  });
  const card = await screen.findByRole("region", { name: "Best trades" });
  expect(card.previousElementSibling?.getAttribute("aria-label")).toBe("History");

  return { card, router };
}

it("shows the best trades among the trials that keep the constraints, which can be chosen", async () => {
  const { card, router } = await trades();
  expect(await within(card).findByRole("img", { name: "Best trades of acc and ms: 2 of 3 trials" })).toBeTruthy();
  expect(within(card).getByText("other trials (1)")).toBeTruthy();
  expect(within(card).getByText(/Trials that break a constraint are left out/)).toBeTruthy();
  expect(within(card).queryByText(/first two/)).toBeNull();
  act(() => drawn.get("Best")?.onRectangle?.([0.7, 0.92], [10, 40])); // 4 is in it, too
  await waitFor(() => expect(router.state.location.search).toMatchObject({ trials: "2-3" }));
  act(() => drawn.get("Best")?.onPick?.(3));
  await waitFor(() => expect(router.state.location.search).toMatchObject({ trials: "2" }));
  await userEvent.click(within(card).getByText("View as table"));
  const table = await within(card).findByRole("table", { name: "Best trades" });
  expect(within(table).getAllByRole("row").map((row) => [...row.children].slice(1).map((cell) => cell.textContent))).toEqual([
    ["Trial", "acc", "ms"],
    ["1", "0.95", "18"],
    ["2", "0.9", "12"],
  ]); // prettier-ignore
});

it("draws the first two of more objectives, and has all in the table", async () => {
  const further = ["ms", "mb"].map((metric) => ({ metric, goal: "minimize" as const }));
  const objective = { metric: "acc", goal: "maximize" as const, further };
  const { card } = await trades({ objective, constraints: undefined });
  expect(within(card).getByText(/The chart shows the first two of 3 objectives, the table all/)).toBeTruthy();
  expect(within(card).queryByText(/constraint/)).toBeNull();
  await userEvent.click(within(card).getByText("View as table"));
  expect(await within(card).findByRole("columnheader", { name: "mb" })).toBeTruthy();
});

it("has no card of best trades with one objective", async () => {
  await drawApp(`/sweeps/${id}?tab=overview`, found());
  expect(await screen.findByRole("table", { name: "Importance of parameters" })).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Best trades" })).toBeNull();
});

it("says how many trials with a value it draws, wherever it draws a sample", async () => {
  const rows = Array.from({ length: 2001 }, (_, i) => trial({ number: i + 1, value: i, params: { lr: i } }));
  render(charts(rows));
  for (const name of ["Parallel coordinates", "By parameter"])
    expect(
      within(await screen.findByRole("region", { name })).getByText(/Shown are 2,000 of 2,001 trials/),
    ).toBeTruthy();
});

it("says no number of curves before it has read them", async () => {
  const answers = found();
  answers[`GET /sweeps/${id}/metrics`] = [403, { detail: "Not now." }];
  await drawApp(`/sweeps/${id}?tab=overview`, answers);
  const card = await screen.findByRole("region", { name: "While they ran" });
  await within(card).findByText(/Not now/);
  expect(within(card).queryByText(/0 trials/)).toBeNull();
});

it("shows the stages of a sweep in their order, with runs, what others made, and the saving", async () => {
  const stage = { key: "0b1", stage: "base", sweep_id: id, sweep_name: "digits", trial: 1, open_trials: 2, ended_trials: 3, held: true }; // prettier-ignore
  const output = { attempt_id: "a", host_id: "h", host_name: "box", made_at: "2026-01-01T00:00:00Z", seconds: 40 };
  const data = [
    { ...stage, output },
    { ...stage, key: "0b2", output, sweep_id: "another" },
    { ...stage, key: "0b3" },
    { ...stage, key: "0b4", open_trials: 0 },
    { ...stage, key: "0f1", stage: "features", output },
  ];
  const stages = [{ name: "base", trials: 6, runs: 1, seconds: 40, seconds_alone: 240 }];
  await drawApp(`/sweeps/${id}?tab=overview`, {
    ...found(),
    [`GET /sweeps/${id}`]: [200, sweep({ spec: { stages: [{ name: "base" }, { name: "features" }] } })],
    "GET /stages": [200, { data }],
    [`GET /sweeps/${id}/report`]: [200, report({ stages })],
  });
  const card = await screen.findByRole("region", { name: "Stages" });
  expect(within(card).getByText(/Sharing saved 3 min 20 s/)).toBeTruthy();
  expect([...card.querySelectorAll(".stages > li")].map((box) => box.textContent)).toEqual([
    "base1 run in 40 s1 taken over from other sweeps1 still to runTrials by output" +
      "0b1 by trial 1 in 40 s0b2 by trial 1 of digits in 40 s0b3 not there0b4 not there",
    "features1 run in 40 sTrials by output0f1 by trial 1 in 40 s",
    "main3 trials done",
  ]);
  expect(within(card).getByText("0b2").getAttribute("href")).toBe(`/sweeps/${id}?tab=trials&stage=0b2`);
});
