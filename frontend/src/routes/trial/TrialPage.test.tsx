import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { MOST_POINTS } from "@/services/trials";
import { drawApp, streamAddress } from "@/test/app";
import { sweep, tradeSweep } from "@/test/factories/sweep";
import { attempt, brokenTrial, trial } from "@/test/factories/trial";

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

const found = (points: number) => ({
  "GET /sweeps/s1": [200, sweep()] as [number, unknown],
  "GET /sweeps/s1/trials/1": [200, trial()] as [number, unknown],
  "GET /sweeps/s1/trials/1/attempts": [200, { data: [attempt()] }] as [number, unknown],
  "GET /attempts/a1/log": [200, { data: [], next_offset: 0, complete: true }] as [number, unknown],
  "GET /attempts/a1/metrics": [
    200,
    {
      data: Array.from({ length: points }, (_, step) => ({
        name: "loss",
        step: step % 50,
        value: 1,
        status: "finite",
      })),
    },
  ] as [number, unknown],
});

it.each([
  ["keeps the constraints", trial({ results: { acc: 0.95, ms: 12 } }), "0.95", "12", undefined],
  ["breaks one", brokenTrial(), "0.97 (breaks a constraint)", "30", /its ms of 30 is more than 20$/],
] as const)("shows all results of a trial that %s", async (_, shown, acc, ms, message) => {
  await drawApp("/sweeps/s1/trials/1", {
    ...found(1),
    "GET /sweeps/s1": [200, tradeSweep()],
    "GET /sweeps/s1/trials/1": [200, shown],
  });
  const fact = async (name: string) => (await screen.findByText(name, { selector: "dt" })).nextSibling?.textContent;
  expect(await fact("acc")).toBe(acc);
  expect(await fact("ms")).toBe(ms);
  const note = screen.getByRole("region", { name: "Overview" }).querySelector(".note");
  expect(note?.textContent ?? "").toMatch(message ?? /^$/);
  expect(note?.className ?? "").toBe(message ? "note plain" : "");
});

it("says that metrics were cut", async () => {
  await drawApp("/sweeps/s1/trials/1", found(MOST_POINTS));
  expect(await screen.findByText(/Only the first 20,000 points are shown/)).toBeTruthy();
});

it("says from which checkpoint an attempt went on, and which stage one ran", async () => {
  const resumed = "from the checkpoint of attempt 1 of host a, stored at 2026-01-01T00:00:00Z";
  await drawApp("/sweeps/s1/trials/1", {
    ...found(1),
    "GET /sweeps/s1/trials/1/attempts": [
      200,
      { data: [attempt({ stage: "base" }), attempt({ id: "a2", number: 2, resumed })] },
    ],
    "GET /attempts/a2/log": [200, { data: [], next_offset: 0, complete: true }],
    "GET /attempts/a2/metrics": [200, { data: [] }],
  });
  expect(await screen.findByText(`Resumed ${resumed}`)).toBeTruthy();
  expect(screen.getAllByText(/^Resumed /)).toHaveLength(1);
  expect(screen.getByText(/, stage base/)).toBeTruthy();
});

it("says nothing of a cut where there was none, and names the zone of its times", async () => {
  await drawApp("/sweeps/s1/trials/1", found(10));
  expect(await screen.findByText("As a table (10 steps)")).toBeTruthy();
  expect(screen.queryByText(/Only the first/)).toBeNull();
  expect(document.querySelector("time[datetime='2026-01-01T00:00:00Z']")?.getAttribute("title")).toMatch(/[A-Z]{3}/);
});

it("keeps in its address which attempt is shown, unless it is the newest", async () => {
  const { router } = await drawApp("/sweeps/s1/trials/1?attempt=1", {
    ...found(1),
    "GET /sweeps/s1/trials/1/attempts": [200, { data: [attempt(), attempt({ id: "a2", number: 2 })] }],
    "GET /attempts/a2/log": [200, { data: [], next_offset: 0, complete: true }],
    "GET /attempts/a2/metrics": [200, { data: [] }],
  });
  const current = () => screen.getByText(/Attempt \d/, { selector: "[aria-current] strong" }).textContent;
  await screen.findByRole("button", { name: "Show below" });
  expect(current()).toBe("Attempt 1");
  await userEvent.click(screen.getByRole("button", { name: "Show below" }));
  await waitFor(() => expect(current()).toBe("Attempt 2"));
  expect(router.state.location.search).toEqual({});
  await userEvent.click(screen.getByRole("button", { name: "Show below" }));
  await waitFor(() => expect(router.state.location.search).toEqual({ attempt: 1 }));
});

it("does not follow a log while live updates are paused", async () => {
  const piece = { offset: 0, length: 5, stream: "stdout", at: "", text: "hello" };
  await drawApp("/sweeps/s1/trials/1", {
    ...found(1),
    "GET /attempts/a1/log": [200, { data: [piece], next_offset: 5, complete: false }],
  });
  expect(await screen.findByText(/shown, following as it is written$/)).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: /pause live updates/ }));
  expect(screen.getByText(/shown, paused/).textContent).toContain("resume live updates");
  await userEvent.click(screen.getByRole("button", { name: /resume live updates/ }));
  expect(await screen.findByText(/shown, following as it is written$/)).toBeTruthy();
  expect(streamAddress()).toMatch(/log\?follow=true&offset=5$/);
});

it("changes a note, whose tags lead to the sweeps that have them", async () => {
  const noted = trial({ note: "odd curve #ablation" });
  const { asked } = await drawApp("/sweeps/s1/trials/1", {
    ...found(1),
    "GET /sweeps/s1/trials/1": [200, noted],
    "PATCH /sweeps/s1/trials/1": [200, noted],
  });
  expect((await screen.findByRole("link", { name: "#ablation" })).getAttribute("href")).toBe(
    "/sweeps?name=%23ablation",
  );
  await userEvent.click(screen.getByRole("button", { name: "Change…" }));
  const field = screen.getByLabelText("Note for people");
  await userEvent.clear(field);
  await userEvent.type(field, " fine ");
  await userEvent.keyboard("{Escape}"); // keeps what was typed
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(asked.find(({ call }) => call.startsWith("PATCH"))?.body).toBe(
      '{"note":"fine","note_was":"odd curve #ablation"}',
    ),
  );
  await waitFor(() => expect(screen.queryByLabelText("Note for people")).toBeNull());
});
