import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, hold, local, type Answers } from "@/test/app";
import { sweep } from "@/test/factories/sweep";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const one = sweep();
const paused = sweep({ id: "0190bbbb-0000-7000-8000-000000000002", name: "second", state: "paused" });
const list = (): Answers => ({
  "GET /sweeps": [200, { data: [one, paused], total: 2 }],
  [`POST /sweeps/${one.id}/pause`]: [409, { detail: "It is at its end." }],
  [`POST /sweeps/${paused.id}/resume`]: [200, paused],
  [`POST /sweeps/${one.id}/cancel`]: [202, { ...one, state: "canceling" }],
});
const choose = async () => {
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(900);
  await userEvent.click(await screen.findByRole("checkbox", { name: "Choose digits" }));
  await userEvent.click(await screen.findByRole("checkbox", { name: "Choose second" }));
};

it("tells what became of each, also when another action is pressed meanwhile", async () => {
  const { queries } = await drawApp("/sweeps", list());
  queries.setQueryData(["sweep", one.id], one);
  await choose();
  const go = hold(/POST .*\/pause/);
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  const resume = screen.getByRole("button", { name: "Resume" });
  if (!resume.hasAttribute("disabled")) await userEvent.click(resume);
  go();
  expect(await screen.findByText(/digits: It is at its end/)).toBeTruthy();
  await waitFor(() => expect(queries.getQueryState(["sweep", one.id])?.isInvalidated).toBe(true)); // also while live updates are paused
});

it("offers a viewer nothing but to compare", async () => {
  await drawApp("/sweeps", { ...list(), "GET /me": [200, { ...local, role: "viewer" }] });
  await choose();
  expect(screen.getByRole("button", { name: "Compare" })).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Pause" })).toBeNull();
});

it("does not say canceled of what is still canceling", async () => {
  await drawApp("/sweeps", list());
  await choose();
  await userEvent.click(screen.getByRole("button", { name: "Cancel…" }));
  expect((await screen.findByRole("dialog")).textContent).toContain("digits, second");
  await userEvent.click(screen.getByRole("button", { name: "Cancel sweeps" }));
  expect(await screen.findByText(/^digits: /)).toBeTruthy();
  expect(screen.getByText("digits: canceling")).toBeTruthy();
});

it("names apart what has one name, and says how many can be compared", async () => {
  const clone = sweep({ id: "0190cccc-0000-7000-8000-000000000003" });
  await drawApp("/sweeps", { ...list(), "GET /sweeps": [200, { data: [one, clone], total: 2 }] });
  vi.spyOn(window, "innerHeight", "get").mockReturnValue(900);
  await userEvent.click(await screen.findByRole("checkbox", { name: "Choose digits (0190aaaa-0000)" }));
  expect(screen.getByText("Compare takes two to ten sweeps.")).toBeTruthy();
  await userEvent.click(screen.getByRole("checkbox", { name: "Choose digits (0190cccc-0000)" }));
  expect(screen.queryByText("Compare takes two to ten sweeps.")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Pause" }));
  expect(await screen.findByText(/^digits \(0190cccc-0000\): /)).toBeTruthy();
});
