import { cleanup, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Line } from "@/plots/CurvesChart";
import { drawApp, type Answers } from "@/test/app";
import { endedSweep, sweep } from "@/test/factories/sweep";
import { trial } from "@/test/factories/trial";

let label = "";
let drawn: string[] = [];
vi.mock("@/plots/EChart", () => ({
  default: (props: { label: string }) => {
    label = props.label;
    drawn.push(label);

    return null;
  },
}));
vi.mock("@/plots/CurvesChart", () => ({
  default: ({ lines }: { lines: Line[] }) => <div role="img" aria-label={lines.map((line) => line.name).join("; ")} />,
}));
beforeEach(() => {
  label = "";
  localStorage.clear();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const spec = { version: 1, name: "x" };
const runs = sweep({ id: "a", name: "runs", spec: { ...spec, image: "one" } });
const over = endedSweep("succeeded", { id: "b", name: "over", spec: { ...spec, image: "two" } });
const trials = (...values: number[]) =>
  [200, { data: values.map((value, i) => trial({ number: i + 1, value })), total: values.length }] as [number, unknown];
const curves = (trial: number) =>
  [
    200,
    {
      name: "val_accuracy",
      data: [
        { trial, state: "succeeded", attempt_id: "x", total: 2, not_finite: 0, steps: [1, 2], values: [0.1, 0.5] },
      ],
    },
  ] as [number, unknown];
const answers = (change: Answers = {}): Answers => ({
  "GET /sweeps/a": [200, runs],
  "GET /sweeps/b": [200, over],
  "GET /sweeps/a/trials": trials(0.5),
  "GET /sweeps/b/trials": trials(0.6, 0.4),
  "GET /sweeps/a/metrics": curves(2),
  "GET /sweeps/b/metrics": curves(2),
  ...change,
});
const compared = "Best value so far of 2 sweeps: ";
const path = '/compare?ids=["a","b"]';

it("draws the best of each, with states in words and what differs in the files", async () => {
  await drawApp(path, answers());
  await waitFor(() => expect(label).toBe(`${compared}runs 0.5; over 0.6`));
  const rows = within(screen.getByRole("table", { name: "Best values" })).getAllByRole("row");
  expect(rows.slice(1).map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
    ["runs", "Running", "val_accuracy (maximize)", "0.9876", "2", "3 of 24 succeeded, 3 running"],
    ["over", "Succeeded", "val_accuracy (maximize)", "0.9876", "2", "20 of 24 succeeded, 3 failed, 1 canceled"],
  ]);
  expect(screen.getByText(/1 sweep goes on\./)).toBeTruthy();
  const files = within(screen.getByRole("table", { name: "Sweep files side by side" })).getAllByRole("row");
  expect(files.slice(1).map((row) => row.textContent)).toEqual(["imageonetwo"]);
});

it("ranks the best trials of all by one objective", async () => {
  await drawApp(path, answers());
  const best = within(await screen.findByRole("table", { name: "Best 3 trials of all" })).getAllByRole("row");
  expect(best.slice(1).map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent))).toEqual([
    ["over", "1", "0.6"],
    ["runs", "1", "0.5"],
    ["over", "2", "0.4"],
  ]);
});

it("draws the curves of the best trials where one metric judges all", async () => {
  await drawApp(path, answers());
  expect(await screen.findByRole("img", { name: "runs, trial 2; over, trial 2" })).toBeTruthy();
  cleanup();
  const loss = { ...over, objective: { metric: "loss", goal: "minimize" } };
  await drawApp(path, answers({ "GET /sweeps/b": [200, loss] }));
  await screen.findByText(/They have different metrics/);
  expect(screen.queryByRole("region", { name: "Curves of the best trials" })).toBeNull();
});

it.each([
  ["live", "no", 2],
  ["paused", "yes", 1],
])(
  "while updates are %s it reads the trials of the sweep that runs so often in 6 s, of the other once",
  async (_, paused, times) => {
    localStorage.setItem("berth-live-paused", paused);
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const all = answers();
    const { asked } = await drawApp(path, all);
    const reads = (id: string) => asked.filter(({ call }) => call === `GET /sweeps/${id}/trials`).length;
    await waitFor(() => expect(label).toBe(`${compared}runs 0.5; over 0.6`));
    all["GET /sweeps/a/trials"] = trials(0.5, 0.9);
    await vi.advanceTimersByTimeAsync(6000);
    expect([reads("a"), reads("b")]).toEqual([times, 1]);
    await waitFor(() => expect(label).toBe(`${compared}runs ${times === 2 ? "0.9" : "0.5"}; over 0.6`));
    expect(screen.queryAllByText(/live updates are paused/)).toHaveLength(paused === "yes" ? 1 : 0);
  },
);

it("keeps the line of a sweep that ends until its trials are read once more", async () => {
  const all = answers();
  const { queries, asked } = await drawApp(path, all);
  await waitFor(() => expect(label).toBe(`${compared}runs 0.5; over 0.6`));
  drawn = [];
  all["GET /sweeps/a"] = [200, endedSweep("succeeded", { id: "a", name: "runs", spec: runs.spec as never })];
  all["GET /sweeps/a/trials"] = trials(0.5, 0.7);
  await queries.invalidateQueries({ queryKey: ["sweep", "a"], exact: true });
  await waitFor(() => expect(label).toBe(`${compared}runs 0.7; over 0.6`));
  expect(drawn.join()).not.toContain("no value");
  expect(asked.filter(({ call }) => call === "GET /sweeps/a/trials")).toHaveLength(2);
  expect(screen.queryByText(/goes on/)).toBeNull();
});

it("says that no trial has a value, and what could not be read", async () => {
  const all = answers({ "GET /sweeps/a/trials": trials(), "GET /sweeps/b/trials": trials() });
  await drawApp(path, all);
  expect(await screen.findByText("No trial has a value yet.")).toBeTruthy();
});

it("names what failed, and reads it again", async () => {
  const all = answers({ "GET /sweeps/b/trials": [400, { detail: "Not now." }] });
  await drawApp(path, all);
  expect((await screen.findByRole("alert")).textContent).toContain("Reading trials failed. Not now.");
  expect(screen.queryByText("No trial has a value yet.")).toBeNull();
  all["GET /sweeps/b/trials"] = trials(0.6);
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(label).toBe(`${compared}runs 0.5; over 0.6`));
});

it("asks for two sweeps", async () => {
  await drawApp("/compare", {});
  expect(await screen.findByText(/Choose two sweeps or more/)).toBeTruthy();
});

it("says that a sweep cannot be read", async () => {
  await drawApp(path, answers({ "GET /sweeps/b": [403, { detail: "It is not yours." }] }));
  expect((await screen.findByRole("alert")).textContent).toContain("Reading a sweep failed. It is not yours.");
});

const first = sweep();
const clone = sweep({ id: "0190bbbb-0000-7000-8000-000000000002" }); // a clone has the name of the first
const address = `/compare?ids=${first.id},${clone.id}`;
const same = (): Answers => ({
  [`GET /sweeps/${first.id}`]: [200, first],
  [`GET /sweeps/${clone.id}`]: [200, clone],
  [`GET /sweeps/${first.id}/trials`]: [200, { data: [trial({ number: 1, value: 0.5 })], total: 1 }],
  [`GET /sweeps/${clone.id}/trials`]: [200, { data: [trial({ number: 1, value: 0.6 })], total: 1 }],
});

it("tells sweeps of one name apart", async () => {
  await drawApp(address, same());
  const table = await screen.findByRole("table", { name: "Best values" });
  const cells = within(table).getAllByRole("row").slice(1).map((row) => within(row).getAllByRole("cell")[0]?.textContent); // prettier-ignore
  expect(new Set(cells).size).toBe(2);
});

it("shows the others when one was deleted, and names the one that is gone", async () => {
  const answers = same();
  const c = "0190cccc-0000-7000-8000-000000000003";
  answers[`GET /sweeps/${c}`] = [404, { detail: "There is no such sweep.", code: "not_found" }];
  await drawApp(`${address},${c}`, answers);
  expect(await screen.findByText(/no such sweep/)).toBeTruthy();
  expect(screen.queryByRole("table", { name: "Best values" })).toBeTruthy();
});

it("says which sweeps it leaves out of more than ten", async () => {
  const ids = Array.from({ length: 12 }, (_, i) => `0190aaaa-${String(i).padStart(4, "0")}-7000-8000-000000000001`);
  const answers = Object.fromEntries(
    ids.flatMap((id) => [
      [`GET /sweeps/${id}`, [200, sweep({ id })] as [number, unknown]],
      [`GET /sweeps/${id}/trials`, [200, { data: [], total: 0 }] as [number, unknown]],
    ]),
  );
  await drawApp(`/compare?ids=${ids.join(",")}`, answers);
  expect(await screen.findByText(/10 sweeps of 12 are compared/)).toBeTruthy();
  const table = await screen.findByRole("table", { name: "Best values" });
  expect(within(table).getAllByRole("row")).toHaveLength(11);
  expect(screen.getByText("digits (0190aaaa-0006) (dash and dot)")).toBeTruthy(); // its colour is that of the first
});

it("says that it shows a part of very many trials", async () => {
  const many = [200, { data: [trial({ number: 9000, value: 0.5 })], total: 50_000 }] as [number, unknown];
  await drawApp(path, answers({ "GET /sweeps/a/trials": many }));
  expect(
    await screen.findByText(/Of sweeps with more than 10,000 trials these are the best and the newest/),
  ).toBeTruthy();
});

it("names the goals where they differ", async () => {
  const least = { ...runs, objective: { metric: "loss", goal: "minimize" } };
  await drawApp(path, answers({ "GET /sweeps/a": [200, least] }));
  await waitFor(() => expect(label).toBe(`${compared}runs (minimize) 0.5; over (maximize) 0.6`));
});

it("names neither a goal nor a metric of a sweep without an objective", async () => {
  const least = { ...runs, objective: { metric: "loss", goal: "minimize" } };
  const free = { ...over, objective: undefined, best: undefined };
  const all = answers({
    "GET /sweeps/a": [200, least],
    "GET /sweeps/b": [200, free],
    "GET /sweeps/b/trials": trials(),
  });
  await drawApp(path, all);
  await waitFor(() => expect(label).toBe(`${compared}runs 0.5; over no value`));
  expect(screen.getByText(/By number of the trial/)).toBeTruthy();
  cleanup();

  const c = { ...over, id: "c", name: "more" };
  Object.assign(all, { "GET /sweeps/c": [200, c], "GET /sweeps/c/trials": trials(0.7) });
  await drawApp('/compare?ids=["a","b","c"]', all);
  await waitFor(() => expect(label).toContain("runs (minimize) 0.5; over no value; more (maximize) 0.7"));
  expect(screen.getByText(/They have different metrics: loss, val_accuracy\./)).toBeTruthy();
});
