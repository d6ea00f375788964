import { screen, within } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, type Answers } from "@/test/app";
import { sweep } from "@/test/factories/sweep";
import { attempt, files, runningAttempt, runningTrial, trial } from "@/test/factories/trial";

afterEach(() => vi.unstubAllGlobals());

const answers = (change: Answers): Answers => ({
  "GET /sweeps/s1": [200, sweep()],
  "GET /sweeps/s1/trials/1": [200, trial()],
  "GET /sweeps/s1/trials/1/attempts": [200, { data: [attempt()] }],
  "GET /attempts/a1/log": [200, { data: [], next_offset: 0, complete: true }],
  "GET /attempts/a1/metrics": [200, { data: [] }],
  ...change,
});
const panel = () => screen.findByRole("region", { name: "Files" });

it("lists stored files with links that download them, and what was left out", async () => {
  const list = files({
    files: 2,
    bytes: 3 * 1024 * 1024,
    left_out: 1,
    left_out_files: [{ path: "link", reason: "it is a symbolic link; links are not followed" }],
    data: [
      { path: "metrics.jsonl", bytes: 1024, sha256: "a".repeat(64), stored_at: "2026-01-01T00:00:30Z" },
      { path: "model/a b#1.h5", bytes: 2048, sha256: "b".repeat(64), stored_at: "2026-01-01T00:00:30Z" },
    ],
  });
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /trials/t1/files": [200, list] }));

  const shown = within(await panel());
  const link = await shown.findByRole("link", { name: "model/a b#1.h5" });
  expect(link.getAttribute("href")).toBe("/api/v1/trials/t1/files/model/a%20b%231.h5?attempt=1");
  expect(link.hasAttribute("download")).toBe(true);
  shown.getByText(/^2 files, 3 MiB/);
  shown.getByText("1 file was left out");
  shown.getByText(/symbolic link/);
});

it.each([
  ["off", "files are not stored: start `berth server` with --artifacts"],
  ["pending", "the store does not answer"],
  ["lost", "removed before they were stored: the limit"],
  ["removed", "files are kept for 2 days"],
] as const)("says why there are no files: %s", async (state, problem) => {
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /trials/t1/files": [200, files({ state, problem })] }));
  await within(await panel()).findByText((text) => text.includes(problem));
  expect(screen.queryByRole("table", { name: "Files of the trial" })).toBeNull();
});

it("says that nothing was written", async () => {
  await drawApp("/sweeps/s1/trials/1", answers({ "GET /trials/t1/files": [200, files()] }));
  await within(await panel()).findByText(/wrote no file/);
});

it("shows nothing of an attempt that runs", async () => {
  const { asked } = await drawApp(
    "/sweeps/s1/trials/1",
    answers({
      "GET /sweeps/s1/trials/1": [200, runningTrial()],
      "GET /sweeps/s1/trials/1/attempts": [200, { data: [runningAttempt()] }],
    }),
  );
  await screen.findByRole("region", { name: "Metrics" });
  expect(screen.queryByRole("region", { name: "Files" })).toBeNull();
  expect(asked.map((one) => one.call)).not.toContain("GET /trials/t1/files");
});
