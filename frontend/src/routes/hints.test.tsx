import { screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, streamAddress, tell, type Answers } from "@/test/app";
import { host } from "@/test/factories/host";
import { sweep } from "@/test/factories/sweep";
import { attempt, memory, rejection, runningTrial, waitingTrial } from "@/test/factories/trial";

vi.mock("@/plots/LineChart", () => ({ default: () => null }));
afterEach(() => vi.unstubAllGlobals());

const at = "2026-01-01T00:00:30Z";
const long = 90_000;
const patience = { timeout: 30_000 }; // what a hint names rests for 2 s

/** listening draws a page whose stream is open, once it has read what came before. */
async function listening(path: string, answers: Answers, sees: RegExp | string) {
  const drawn = await drawApp(path, answers);
  await screen.findAllByText(sees);
  expect(streamAddress()).toMatch(/\/events\?live=true$/);
  const reads = (call: string) => drawn.asked.filter((one) => one.call === call).length;

  return { ...drawn, reads };
}

it("says that a machine fell silent, and that it is back", { timeout: long }, async () => {
  const answers: Answers = {
    "GET /hosts": [200, { data: [host()] }],
    "GET /leases": [200, { data: [] }],
    "GET /queue": [200, { data: [], total: 0 }],
  };
  await listening("/machines", answers, "Ready");
  answers["GET /hosts"] = [200, { data: [host({ state: "lost" })] }];
  tell("fresh", { kind: "host.silent", subject: "h1", at });
  expect(await screen.findByText("Lost: its worker does not answer", {}, patience)).toBeTruthy();
  answers["GET /hosts"] = [200, { data: [host()] }];
  tell("fresh", { kind: "host.back", subject: "h1", at });
  expect(await screen.findByText("Ready", {}, patience)).toBeTruthy();
});

it("says why a trial waits now, on its page and in the queue", { timeout: long }, async () => {
  const waits = (reason: string) => ({ ...waitingTrial(), waiting: [rejection({ reason })] });
  const queued = (reason: string) => ({
    data: [
      {
        position: 1,
        attempt_id: "a1",
        number: 1,
        stage: "main",
        purpose: "run",
        sweep_id: "s1",
        sweep_name: "mnist",
        sweep_state: "running",
        trial: 1,
        since: "2026-01-01T00:00:00Z",
        waiting: [rejection({ reason })],
      },
    ],
    total: 1,
  });
  const answers: Answers = {
    "GET /sweeps/s1": [200, sweep()],
    "GET /sweeps/s1/trials/1": [200, waits("box is full")],
    "GET /sweeps/s1/trials/1/attempts": [200, { data: [] }],
    "GET /hosts": [200, { data: [host()] }],
    "GET /leases": [200, { data: [] }],
    "GET /queue": [200, queued("box is full")],
  };
  const { router } = await listening("/sweeps/s1/trials/1", answers, "box is full");
  const now = (reason: string) => {
    answers["GET /sweeps/s1/trials/1"] = [200, waits(reason)];
    answers["GET /queue"] = [200, queued(reason)];
    tell("fresh", { kind: "waiting", subject: "a1", sweep_id: "s1", trial: 1, at, waiting: [rejection({ reason })] });
  };
  now("box is cordoned");
  expect(await screen.findByText("box is cordoned", {}, patience)).toBeTruthy();
  await router.navigate({ to: "/machines" });
  expect(await screen.findByText("box is cordoned", {}, patience)).toBeTruthy();
  now("box has no GPU");
  expect(await screen.findByText("box has no GPU", {}, patience)).toBeTruthy();
});

it(
  "reads the metrics and the memory of the attempt that reported some, and of no other",
  { timeout: long },
  async () => {
    const running = attempt({ state: "running", finished_at: undefined as never });
    const points = (n: number) => ({
      data: Array.from({ length: n }, (_, step) => ({ name: "loss", step, value: 1, status: "finite" })),
    });
    const answers: Answers = {
      "GET /sweeps/s1": [200, sweep()],
      "GET /sweeps/s1/trials/1": [200, runningTrial()],
      "GET /sweeps/s1/trials/1/attempts": [200, { data: [running] }],
      "GET /attempts/a1/log": [200, { data: [], next_offset: 0, complete: true }],
      "GET /attempts/a1/metrics": [200, points(10)],
      "GET /attempts/a1/memory": [200, memory([])],
    };
    const { reads } = await listening("/sweeps/s1/trials/1", answers, "As a table (10 steps)");
    answers["GET /attempts/a1/metrics"] = [200, points(11)];
    const before = reads("GET /attempts/a1/memory");
    tell("fresh", { kind: "metrics", subject: "a1", sweep_id: "s1", trial: 1, at });
    expect(await screen.findByText("As a table (11 steps)", {}, patience)).toBeTruthy();
    expect(reads("GET /attempts/a1/memory")).toBe(before);
    tell("fresh", { kind: "memory", subject: "a1", sweep_id: "s1", trial: 1, at });
    await waitFor(() => expect(reads("GET /attempts/a1/memory")).toBe(before + 1), patience);
    expect(reads("GET /attempts/a1/metrics")).toBe(2);
  },
);
