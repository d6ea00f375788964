import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, hold, local, type Answers } from "@/test/app";
import { endedSweep, newSweep, sweep, tradeSweep } from "@/test/factories/sweep";
import { runningTrial, trial } from "@/test/factories/trial";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const id = sweep().id;
const other = "0190bbbb-0000-7000-8000-000000000002";
const trials = { data: [] };
const found = {
  [`GET /sweeps/${id}`]: [200, sweep()] as [number, unknown],
  [`GET /sweeps/${id}/trials`]: [200, trials] as [number, unknown],
  [`GET /sweeps/${other}`]: [200, sweep({ id: other, name: "second" })] as [number, unknown],
  [`GET /sweeps/${other}/trials`]: [200, trials] as [number, unknown],
};

it("names the sweep in a dialog, which does not survive the change of sweep", async () => {
  const { router } = await drawApp(`/sweeps/${id}`, found);
  await userEvent.click(await screen.findByRole("button", { name: "Cancel…" }));
  expect(await screen.findByText("Cancel digits (0190aaaa-0000)?")).toBeTruthy();
  await router.navigate({ to: "/sweeps/$sweepId", params: { sweepId: other } });
  expect(await screen.findByRole("heading", { name: "second" })).toBeTruthy();
  expect(screen.queryByText(/^Cancel digits/)).toBeNull();
});

it("takes nothing from an address but what it knows", async () => {
  const { router } = await drawApp(`/sweeps/${id}?tab=trials&sort=best&state=failed&odd=1`, found);
  expect(await screen.findByRole("heading", { name: "digits" })).toBeTruthy();
  expect(router.state.matches.at(-1)?.search).toEqual({ tab: "trials", state: ["failed"] });
});

it("sets no number where there is none", async () => {
  await drawApp(`/sweeps/${id}`, found);
  await userEvent.click(await screen.findByRole("button", { name: "More" }));
  await userEvent.click(await screen.findByText("Trials at once…"));
  await userEvent.clear(await screen.findByRole("textbox", { name: "Trials at once" }));
  expect(screen.getByRole("button", { name: "Set" }).hasAttribute("disabled")).toBe(true);
});

it("says why trials failed, once for each reason", async () => {
  const reasons = [
    {
      state: "failed",
      failure_kind: "no_result",
      message: "it reported no metric: print val_acc=0.5",
      trials: 2,
      first: 4,
    },
    { state: "infeasible", failure_kind: "too_big", message: "it needs 900 GiB", trials: 1, first: 9 },
  ];
  await drawApp(`/sweeps/${id}`, {
    ...found,
    [`GET /sweeps/${id}`]: [200, endedSweep("failed", { id })],
    [`GET /sweeps/${id}/failures`]: [200, { data: reasons }],
  });
  const card = await screen.findByRole("region", { name: "Why trials failed" });
  await waitFor(() => expect(card.querySelectorAll("li").length).toBe(2));
  expect([...card.querySelectorAll("li")].map((one) => one.textContent)).toEqual([
    "2 trials failed, such as trial 4: it reported no metric: print val_acc=0.5",
    "1 trial needed too much memory, such as trial 9: it needs 900 GiB",
  ]);
});

it("leaves out the columns of constants, which a person can show", async () => {
  const rows = [1, 2].map((number) => trial({ number, params: { lr: number / 10, epochs: 5 } }));
  await drawApp(`/sweeps/${id}?tab=trials`, {
    ...found,
    [`GET /sweeps/${id}/trials`]: [200, { data: rows, total: 2 }],
  });
  expect(await screen.findByRole("columnheader", { name: "lr" })).toBeTruthy();
  expect(screen.queryByRole("columnheader", { name: "epochs" })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Columns" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Show epochs" }));
  expect(await screen.findByRole("columnheader", { name: "epochs" })).toBeTruthy();
  await userEvent.click(screen.getByRole("menuitem", { name: "Hide lr" }));
  await waitFor(() => expect(screen.queryByRole("columnheader", { name: "lr" })).toBeNull());
});

it("adds a column with the last values of another metric", async () => {
  const metrics = [{ name: "loss", step: 7, value: 0.25, status: "finite", at: "2026-01-01T00:00:00Z" }];
  const running = { ...trial({ number: 1 }), latest_attempt: { ...runningTrial().latest_attempt, metrics } };
  const rows = [running, trial({ number: 2 })];
  await drawApp(`/sweeps/${id}?tab=trials`, {
    ...found,
    [`GET /sweeps/${id}/trials`]: [200, { data: rows, total: 2 }],
    [`GET /sweeps/${id}/metric-names`]: [200, { data: [{ name: "val_accuracy" }, { name: "loss" }] }],
  });
  await userEvent.click(await screen.findByRole("button", { name: "Columns" }));
  expect(screen.queryByRole("menuitem", { name: /val_accuracy/ })).toBeNull(); // the objective has its column
  await userEvent.click(await screen.findByRole("menuitem", { name: "Show loss" }));
  expect(await screen.findByRole("columnheader", { name: "loss" })).toBeTruthy();
  expect(screen.getByText("0.25").title).toBe("at step 7");
});

it("has columns of the other objectives and of the constraints, which a person can hide", async () => {
  const constraints = [
    { metric: "ms", max: 20 },
    { metric: "acc", min: 0.5 },
    { metric: "size", min: 1, max: 9 },
  ];
  await drawApp(`/sweeps/${id}?tab=trials`, {
    ...found,
    [`GET /sweeps/${id}`]: [200, tradeSweep({ constraints })],
    [`GET /sweeps/${id}/trials`]: [200, { data: [trial({ results: { acc: 0.95, ms: 12, size: 3 } })], total: 1 }],
  });
  expect(await screen.findByRole("columnheader", { name: "size" })).toBeTruthy();
  const heads = screen.getAllByRole("columnheader").map((head) => head.textContent.trim());
  expect(heads.filter((head) => /acc|ms|size/.test(head))).toEqual(["acc", "ms", "size"]);
  await userEvent.click(screen.getByRole("button", { name: "Columns" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Hide ms" }));
  await waitFor(() => expect(screen.queryByRole("columnheader", { name: "ms" })).toBeNull());
});

it("asks for no more metrics than the server tells at once", async () => {
  const constraints = Array.from({ length: 12 }, (_, i) => ({ metric: `m${i}`, max: 1 }));
  await drawApp(`/sweeps/${id}?tab=trials`, {
    ...found,
    [`GET /sweeps/${id}`]: [200, sweep({ constraints })],
    [`GET /sweeps/${id}/trials`]: [200, { data: [trial()], total: 1 }],
  });
  expect(await screen.findByRole("columnheader", { name: "m9" })).toBeTruthy();
  expect(screen.queryByRole("columnheader", { name: "m10" })).toBeNull();
});

it("says what all objectives and constraints are", async () => {
  const constraints = [
    { metric: "ms", max: 20 },
    { metric: "size", min: 1, max: 9 },
  ];
  const answers: Answers = { ...found, [`GET /sweeps/${id}`]: [200, tradeSweep({ constraints })] };
  const { queries } = await drawApp(`/sweeps/${id}`, answers);
  const fact = async (name: string) => (await screen.findByText(name)).parentElement?.textContent;
  expect(await fact("Objectives")).toBe("Objectivesmaximize acc, minimize ms");
  expect(await fact("Constraints")).toBe("Constraintsms at most 20, size at least 1 and at most 9");
  answers[`GET /sweeps/${id}`] = [200, sweep()];
  await queries.invalidateQueries({ queryKey: ["sweep", id] });
  await waitFor(() => expect(screen.queryByText("Constraints")).toBeNull());
  expect(screen.queryByText("Objectives")).toBeNull();
});

it("offers a viewer nothing, and says why", async () => {
  await drawApp(`/sweeps/${id}`, { ...found, "GET /me": [200, { ...local, role: "viewer" }] });
  expect(await screen.findByText(/Your role is viewer/)).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Pause" })).toBeNull();
});

it("keeps the page when it cannot be read again", async () => {
  const answers = { ...found };
  const { queries } = await drawApp(`/sweeps/${id}`, answers);
  await screen.findByRole("heading", { name: "digits" });
  answers[`GET /sweeps/${id}`] = [400, { detail: "Not now." }];
  await queries.invalidateQueries({ queryKey: ["sweep", id] });
  expect(await screen.findByText(/Not now/)).toBeTruthy();
  expect(screen.getByRole("heading", { name: "digits" })).toBeTruthy();
  expect(screen.getAllByRole("button", { name: "Try again" }).length).toBeGreaterThan(0); // its tab says so, too
});

it("shows what the server said of the new sweep", async () => {
  const warnings = [{ code: "W_IMAGE_MISSING", pointer: "/image", detail: "No machine has the image." }];
  await drawApp(`/sweeps/${id}`, {
    ...found,
    [`GET /sweeps/${id}`]: [200, endedSweep("failed")],
    [`POST /sweeps/${id}/clone`]: [201, sweep({ id: other, name: "second", warnings })],
    [`POST /sweeps/${id}/clones`]: [201, sweep({ id: other, name: "second", warnings })],
  });
  await userEvent.click(await screen.findByRole("button", { name: "More" }));
  await userEvent.click(await screen.findByText("Clone…"));
  await userEvent.click(await screen.findByRole("button", { name: "Clone" }));
  expect(await screen.findByText("No machine has the image.")).toBeTruthy();
});

it("writes the file with numbers as the server wrote them", async () => {
  const text = JSON.stringify(sweep()).replace(
    /}$/,
    ',"spec":{"version":1,"name":"5","seed":9007199254740993,"lr":[1.0,2.50]}}',
  );
  await drawApp(`/sweeps/${id}?tab=spec`, { ...found, [`GET /sweeps/${id}`]: [200, text] });
  const file = await screen.findByLabelText("Sweep file");
  expect(file.textContent).toBe('version: 1\nname: "5"\nseed: 9007199254740993\nlr:\n  - 1.0\n  - 2.50\n');
});

it("says how long it still takes and from which figures, and nothing of it once it has ended", async () => {
  const eta = { min_seconds: 240, max_seconds: 372, why: "17 to start and 3 that run at once" };
  const answers: Answers = { ...found, [`GET /sweeps/${id}`]: [200, sweep({ eta })] };
  const { queries } = await drawApp(`/sweeps/${id}`, answers);
  const fact = (await screen.findByText("Still takes")).parentElement;
  expect(fact?.textContent).toBe("Still takes4 min to 6 min 12 s");
  expect(screen.getByText("Still takes, if it goes on as now: 17 to start and 3 that run at once.")).toBeTruthy();

  answers[`GET /sweeps/${id}`] = [200, sweep({ state: "paused" })];
  await queries.invalidateQueries({ queryKey: ["sweep", id] });
  expect(await screen.findByText("not known while it is paused")).toBeTruthy();
  answers[`GET /sweeps/${id}`] = [200, endedSweep("succeeded")];
  await queries.invalidateQueries({ queryKey: ["sweep", id] });
  await waitFor(() => expect(screen.queryByText("Still takes")).toBeNull());
});

it("shows that no more than 500 trials can be chosen", async () => {
  const rows = Array.from({ length: 3 }, (_, i) => trial({ number: 600 + i }));
  const answers: Answers = { ...found };
  answers[`GET /sweeps/${id}/trials`] = [200, { data: rows, total: 3 }];
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(900);
  const { router } = await drawApp(`/sweeps/${id}?tab=trials&trials=1-500`, answers);
  const box = await screen.findByRole<HTMLInputElement>("checkbox", { name: "Choose trial 600" });
  await userEvent.click(box);
  await waitFor(() => expect(router.state.status).toBe("idle"));
  expect(box.checked).toBe(false);
  expect(box.disabled).toBe(true);
  expect(screen.getByText("500 trials are chosen. No more can be.")).toBeTruthy();
});

it("stays on the tab that a person reads when the first trials come", async () => {
  const answers: Answers = { ...found };
  answers[`GET /sweeps/${id}`] = [200, { ...newSweep(), id }];
  answers[`GET /sweeps/${id}/trials`] = [200, { data: [], total: 0 }];
  const { queries } = await drawApp(`/sweeps/${id}`, answers);
  expect(await screen.findByText(/first trials appear here in a moment/)).toBeTruthy();
  const field = screen.getByLabelText("Value at least");
  await userEvent.type(field, "0.9");
  answers[`GET /sweeps/${id}`] = [200, sweep()];
  answers[`GET /sweeps/${id}/trials`] = [200, { data: [trial({ value: 0.95 })], total: 1 }];
  await act(() => queries.invalidateQueries({ queryKey: ["sweep", id] }));
  await waitFor(() => expect(screen.getByRole("region", { name: "Overview" }).textContent).toContain("Running"));
  expect(screen.getByRole("tab", { name: "Trials" }).getAttribute("aria-selected")).toBe("true");
  expect(screen.getByLabelText<HTMLInputElement>("Value at least").value).toBe("0.9");
});

it("does not close a dialog when an earlier action is answered", async () => {
  const answers: Answers = { ...found };
  answers[`POST /sweeps/${id}/pause`] = [200, sweep({ state: "paused" })];
  const { asked } = await drawApp(`/sweeps/${id}?tab=spec`, answers);
  const reads = () => asked.filter(({ call }) => call === `GET /sweeps/${id}`).length;
  const go = hold(/POST .*\/pause/);
  await userEvent.click(await screen.findByRole("button", { name: "Pause" }));
  await userEvent.click(screen.getByRole("button", { name: "More" }));
  await userEvent.click(await screen.findByText("Trials at once…"));
  const field = await screen.findByRole<HTMLInputElement>("textbox", { name: "Trials at once" });
  await userEvent.clear(field);
  await userEvent.type(field, "12");
  const before = reads();
  go();
  await waitFor(() => expect(reads()).toBeGreaterThan(before)); // the answer was taken in
  expect(screen.queryByRole<HTMLInputElement>("textbox", { name: "Trials at once" })?.value).toBe("12");
});

it("forgets a sweep that was deleted, and reads the list again", async () => {
  const answers: Answers = {
    ...found,
    [`GET /sweeps/${id}`]: [200, endedSweep("succeeded", { id })],
    [`DELETE /sweeps/${id}`]: [204, null],
    "GET /sweeps": [200, { data: [sweep({ id: other, name: "second" })], total: 1 }],
  };
  const { queries } = await drawApp(`/sweeps/${id}?tab=spec`, answers);
  await userEvent.click(await screen.findByRole("button", { name: "More" }));
  await userEvent.click(await screen.findByText("Delete…"));
  await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
  expect(await screen.findByRole("heading", { name: "Sweeps" })).toBeTruthy();
  await waitFor(() => expect(queries.getQueryData(["sweep", id])).toBeUndefined());
});
