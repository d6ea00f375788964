import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { LineChartProps } from "@/plots/LineChart";
import { drawApp, type Answers } from "@/test/app";
import { device, host } from "@/test/factories/host";

const GiB = 1024 ** 3;
const charts = new Map<string, LineChartProps>();

vi.mock("@/plots/LineChart", () => ({
  default: (props: LineChartProps) => {
    charts.set(props.label.split(";")[0] ?? "", props);

    return null;
  },
}));
const start = Date.parse("2026-01-01T00:00:00Z") / 1000;
const now = start + 3 * 60 + 30;
beforeEach(() => {
  charts.clear();
  vi.useFakeTimers({ toFake: ["Date"], now: now * 1000 });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const full = { at: "2026-01-01T00:00:00Z", memory_bytes: 64 * GiB, reserved_bytes: 32 * GiB, attempts: 3 };
const used = {
  interval_seconds: 60,
  points: [
    { ...full, measured_bytes: 5 * GiB, used_by_others_bytes: 0 },
    { ...full, at: "2026-01-01T00:03:00Z" },
  ],
  devices: [
    { id: "GPU-1", points: [{ ...full, memory_bytes: 140 * GiB, measured_bytes: 20 * GiB, sm_activity: 0.5 }] },
    { id: "GPU-gone", points: [full] },
  ],
};
const answers = (change: Answers): Answers => ({
  "GET /hosts": [200, { data: [host({ devices: [device()] })] }],
  "GET /leases": [200, { data: [] }],
  "GET /queue": [200, { data: [], total: 0 }],
  "GET /hosts/h1/usage": [200, used],
  ...change,
});
const open = async (change: Answers = {}) => {
  const shown = await drawApp("/machines", answers(change));
  await userEvent.click(await screen.findByText("Over time"));

  return shown;
};
const reads = (asked: { call: string }[]) => asked.filter(({ call }) => call === "GET /hosts/h1/usage").length;

it("is read only once a person opens it", async () => {
  const { asked } = await drawApp("/machines", answers({}));
  await screen.findByText("Over time");
  expect(reads(asked)).toBe(0);
  await userEvent.click(screen.getByText("Over time"));
  await waitFor(() => expect(reads(asked)).toBe(1));
});

it("draws the machine and each GPU that it had, with gaps", async () => {
  await open();
  await waitFor(() =>
    expect([...charts.keys()]).toEqual([
      "Memory of box over time",
      "Memory of NVIDIA H200 (GPU-1) over time",
      "SM activity, NVIDIA H200 (GPU-1)",
      "Memory of GPU-gone over time",
    ]),
  );
  expect(charts.get("Memory of box over time")).toMatchObject({
    x: "clock",
    y: "bytes",
    xs: [start + 240 - 6 * 3600, start, start + 60, start + 180],
    lines: [
      { name: "reserved", values: [null, 32 * GiB, null, 32 * GiB] },
      { name: "held by attempts", values: [null, 5 * GiB, null, null] },
      { name: "used by others", values: [null, 0, null, null] },
      { name: "in all", values: [null, 64 * GiB, null, 64 * GiB], dashed: true },
    ],
  });
  expect(charts.get("SM activity, NVIDIA H200 (GPU-1)")?.lines[0]?.values).toEqual([null, 0.5, null, null]);
});

it("has the same as a table, the newest first", async () => {
  await open();
  await userEvent.click((await screen.findAllByText("View as table"))[0] as HTMLElement);
  const rows = within(await screen.findByRole("table", { name: "Memory of box by time" })).getAllByRole("row");
  expect(rows.slice(1).map((row) => [...row.children].slice(1).map((cell) => cell.textContent))).toEqual([
    ["3", "32 GiB", "not measured", "not measured", "64 GiB"],
    ["not known", "not measured", "not measured", "not measured", "not measured"],
    ["3", "32 GiB", "5,120 MiB", "0 MiB", "64 GiB"],
    ["not known", "not measured", "not measured", "not measured", "not measured"],
  ]);
});

it("shows that the machine, or a GPU alone, is away now", async () => {
  const away = {
    ...used,
    points: [full],
    devices: [{ id: "GPU-1", points: [{ ...full, at: "2025-12-31T23:00:00Z" }] }],
  };
  await open({ "GET /hosts/h1/usage": [200, away] });
  await waitFor(() => expect(charts.size).toBe(2));
  const [machine, gpu] = [...charts.values()];
  const from = start + 240 - 6 * 3600;
  expect(machine?.xs).toEqual([from, start, start + 60, start + 180]);
  expect(gpu?.xs).toEqual([from, start - 3600, start - 3540, start + 180]);
  await userEvent.click((await screen.findAllByText("View as table"))[0] as HTMLElement);
  const rows = within(await screen.findByRole("table", { name: "Memory of box by time" })).getAllByRole("row");
  expect(rows.slice(1).map((row) => row.children[1]?.textContent)).toEqual(["not known", "3", "not known"]);
});

it("is read again when it is opened again", async () => {
  const { asked } = await open();
  await waitFor(() => expect(charts.size).toBe(4));
  await userEvent.click(screen.getByText("Over time"));
  await waitFor(() => expect(screen.queryByText(/^The most in each/)).toBeNull());
  vi.setSystemTime((now + 240) * 1000);
  await userEvent.click(screen.getByText("Over time"));
  await waitFor(() => expect(reads(asked)).toBe(2));
});

it("reads the span that is chosen", async () => {
  const { queries } = await open();
  await userEvent.click(await screen.findByText("7 days"));
  await waitFor(() => expect(queries.getQueryState(["usage", "h1", 168])?.status).toBe("success"));
});

it("says that nothing is known, and that reading failed", async () => {
  await open({ "GET /hosts/h1/usage": [200, { interval_seconds: 60, points: [], devices: [] }] });
  expect(await screen.findByText(/^Nothing is known of this time\./)).toBeTruthy();
});

it("reads again when reading failed", async () => {
  const all = answers({ "GET /hosts/h1/usage": [400, { detail: "Not now." }] });
  await drawApp("/machines", all);
  await userEvent.click(await screen.findByText("Over time"));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain("Reading how full it was failed. Not now.");
  all["GET /hosts/h1/usage"] = [200, used];
  await userEvent.click(within(alert).getByRole("button", { name: "Try again" }));
  await waitFor(() => expect(charts.size).toBeGreaterThan(0));
});
