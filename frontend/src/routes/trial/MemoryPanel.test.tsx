import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LineChartProps } from "@/plots/LineChart";
import { drawApp, type Answers } from "@/test/app";
import { sweep } from "@/test/factories/sweep";
import { attempt, memory, point, runningAttempt, runningTrial, trial } from "@/test/factories/trial";

const MiB = 1024 * 1024;
const TITLE = "Memory and activity over time";
const charts = new Map<string, LineChartProps>();

vi.mock("@/plots/LineChart", () => ({
  default: (props: LineChartProps) => {
    charts.set(props.label.split(" over ")[0] ?? "", props);

    return null;
  },
}));
beforeEach(() => {
  charts.clear();
  localStorage.clear();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const answers = (change: Answers): Answers => ({
  "GET /sweeps/s1": [200, sweep()],
  "GET /sweeps/s1/trials/1": [200, trial()],
  "GET /sweeps/s1/trials/1/attempts": [200, { data: [attempt()] }],
  "GET /attempts/a1/log": [200, { data: [], next_offset: 0, complete: true }],
  "GET /attempts/a1/metrics": [200, { data: [] }],
  ...change,
});
const panel = () => screen.findByRole("region", { name: TITLE });
const gpu = memory(
  [
    point(0, { host_bytes: 100 * MiB }),
    point(2, { host_bytes: 300 * MiB, device_bytes: 500 * MiB, sm_activity: 0.25 }),
    point(12, { host_bytes: 200 * MiB, device_bytes: 400 * MiB, sm_activity: 0.5 }),
  ],
  { interval_seconds: 2, device_reserved_bytes: 640 * MiB },
);

it("draws host and GPU memory against their reservations, and activity, with gaps", async () => {
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /attempts/a1/memory": [200, gpu] }));
  await waitFor(() => expect([...charts.keys()]).toEqual(["Machine memory", "GPU memory", "SM activity"]));
  const xs = [0, 2, 4, 12];
  expect(charts.get("Machine memory")).toMatchObject({
    x: "seconds",
    y: "bytes",
    xs,
    lines: [
      { name: "held", values: [100 * MiB, 300 * MiB, null, 200 * MiB] },
      { name: "reserved (dashed)", values: xs.map(() => 1000 * MiB), dashed: true },
    ],
  });
  expect(charts.get("GPU memory")?.lines.map((line) => line.values)).toEqual([
    [null, 500 * MiB, null, 400 * MiB],
    xs.map(() => 640 * MiB),
  ]);
  expect(charts.get("SM activity")).toMatchObject({ y: "share", lines: [{ values: [null, 0.25, null, 0.5] }] });
});

it("has the same figures as a table", async () => {
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /attempts/a1/memory": [200, gpu] }));
  await userEvent.click(await screen.findByText("View as table"));
  const rows = within(screen.getByRole("table", { name: "Memory and activity by time" })).getAllByRole("row");
  expect(rows.map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
    ["Since start", "Machine memory", "GPU memory", "SM activity"],
    ["0 s", "100 MiB", "not measured", "not measured"],
    ["2 s", "300 MiB", "500 MiB", "25 %"],
    ["4 s", "not measured", "not measured", "not measured"],
    ["12 s", "200 MiB", "400 MiB", "50 %"],
  ]);
});

it("shows no GPU to an attempt that has none, and names what was not measured of one that has", async () => {
  const cores = memory([point(0, { host_bytes: MiB })]);
  const found = answers({ "GET /attempts/a1/memory": [200, cores] });
  const { queries } = await drawApp("/sweeps/s1/trials/1", found);
  await waitFor(() => expect([...charts.keys()]).toEqual(["Machine memory"]));
  expect(screen.queryByText(/Not measured/)).toBeNull();

  found["GET /attempts/a1/memory"] = [200, { ...cores, device_reserved_bytes: MiB }];
  await queries.invalidateQueries({ queryKey: ["sweep", "s1", "memory"] });
  expect(await screen.findByText(/Not measured: GPU memory, SM activity\./)).toBeTruthy();
  expect([...charts.keys()]).toEqual(["Machine memory"]);
});

it.each([
  [
    "a finished attempt without figures",
    attempt(),
    memory([]),
    /^Memory and activity over timeNothing was measured\. /,
  ],
  ["one that runs", runningAttempt(), memory([]), /Nothing was measured yet/],
])("says why there is no chart of %s", async (_, one, found, text) => {
  await drawApp(
    "/sweeps/s1/trials/1",
    answers({
      "GET /sweeps/s1/trials/1/attempts": [200, { data: [one] }],
      "GET /attempts/a1/memory": [200, found],
    }),
  );
  await waitFor(async () => expect((await panel()).textContent).toMatch(text));
  expect(charts.size).toBe(0);
});

it("says that reading failed, and reads again", async () => {
  const all = answers({ "GET /attempts/a1/memory": [400, { detail: "Not now." }] });
  await drawApp("/sweeps/s1/trials/1", all);
  const alert = await within(await panel()).findByRole("alert");
  expect(alert.textContent).toContain("Reading memory failed. Not now.");
  all["GET /attempts/a1/memory"] = [200, gpu];
  await userEvent.click(within(alert).getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(charts.has("GPU memory")).toBe(true));
});

it.each([
  ["runs", runningAttempt(), "no", true],
  ["runs, while live updates are paused", runningAttempt(), "yes", false],
  ["has ended", attempt(), "no", false],
])("of an attempt that %s it is read again by itself or not", async (_, one, paused, again) => {
  localStorage.setItem("berth-live-paused", paused);
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const { asked } = await drawApp(
    "/sweeps/s1/trials/1",
    answers({
      "GET /sweeps/s1/trials/1": [200, runningTrial()],
      "GET /sweeps/s1/trials/1/attempts": [200, { data: [one] }],
      "GET /attempts/a1/memory": [200, gpu],
    }),
  );
  const reads = () => asked.filter(({ call }) => call === "GET /attempts/a1/memory").length;
  await waitFor(() => expect(reads()).toBe(1));
  await vi.advanceTimersByTimeAsync(61_000);
  expect(reads() > 1).toBe(again);
});

it("shows the newest attempt first, and another when it is chosen", async () => {
  const second = memory([point(0, { host_bytes: 7 * MiB })]);
  await drawApp(
    "/sweeps/s1/trials/1",
    answers({
      "GET /sweeps/s1/trials/1/attempts": [200, { data: [attempt(), attempt({ id: "a2", number: 2 })] }],
      "GET /attempts/a2/memory": [200, second],
      "GET /attempts/a2/metrics": [200, { data: [] }],
      "GET /attempts/a2/log": [200, { data: [], next_offset: 0, complete: true }],
      "GET /attempts/a1/memory": [200, gpu],
    }),
  );
  expect(await screen.findByText(/^Attempt 2: the most in each 1 s/)).toBeTruthy();
  const list = within(screen.getByRole("region", { name: "Attempts" })).getAllByRole("listitem");
  expect(list.map((item) => item.querySelector("strong")?.textContent)).toEqual(["Attempt 2", "Attempt 1"]);
  await userEvent.click(screen.getByRole("button", { name: "Show below" }));
  expect(await screen.findByText(/^Attempt 1: the most in each 2 s/)).toBeTruthy();
});

it("says of a recorded peak that no point has", async () => {
  const points = [point(0, { host_bytes: 300 * MiB, device_bytes: 100 * MiB })];
  const peaks = { device_reserved_bytes: 640 * MiB, host_peak_bytes: 300 * MiB, device_peak_bytes: 600 * MiB };
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /attempts/a1/memory": [200, memory(points, peaks)] }));
  expect(await screen.findByText(/The recorded peak of GPU memory, 600 MiB, fell between two points\./)).toBeTruthy();
  expect(screen.queryByText(/peak of machine memory/)).toBeNull();
});
