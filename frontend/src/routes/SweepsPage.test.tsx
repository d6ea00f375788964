import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, local } from "@/test/app";
import { endedSweep, sweep } from "@/test/factories/sweep";

afterEach(() => vi.unstubAllGlobals());

const eta = { min_seconds: 240, max_seconds: 372, why: "figures" };
const row = async (name: string) => {
  const found = (await screen.findByRole("link", { name })).closest("tr");
  if (!found) throw new Error(`no row ${name}`);

  return within(found);
};

it("says how long running sweeps still take, of those where that is known", async () => {
  const rows = [
    sweep({ id: "a", name: "known" }),
    sweep({ id: "b", name: "young" }),
    sweep({ id: "c", name: "broken" }),
    sweep({ id: "d", name: "halted", state: "paused" }),
    endedSweep("succeeded", { id: "e", name: "over" }),
  ];
  const { asked } = await drawApp("/sweeps", {
    "GET /sweeps": [200, { data: rows, total: 5 }],
    "GET /sweeps/a": [200, sweep({ id: "a", eta })],
    "GET /sweeps/b": [200, sweep({ id: "b" })],
    "GET /sweeps/c": [400, { detail: "Not now." }],
  });
  expect(await (await row("known")).findByText("4 min to 6 min 12 s left")).toBeTruthy();
  const calls = () => asked.map(({ call }) => call).filter((call) => call.startsWith("GET /sweeps/"));
  await waitFor(() => expect(calls()).toEqual(["GET /sweeps/a", "GET /sweeps/b", "GET /sweeps/c"]));
  for (const name of ["young", "broken", "halted", "over"]) expect((await row(name)).queryByText(/left$/)).toBeNull();
});

const two = [
  sweep({ id: "a", name: "one" }),
  sweep({ id: "b", name: "two" }),
  endedSweep("failed", { id: "c", name: "over" }),
];
const listed = { "GET /sweeps": [200, { data: two, total: 3 }] as [number, unknown] };
const choose = async (name: string) => userEvent.click(await screen.findByRole("checkbox", { name: `Choose ${name}` }));
const bulk = () => within(screen.getByRole("group", { name: "With the chosen sweeps" }));

it("does to each chosen sweep what it can, and tells what became of it", async () => {
  const { asked } = await drawApp("/sweeps", {
    ...listed,
    "POST /sweeps/a/pause": [200, sweep({ id: "a", state: "paused" })],
    "POST /sweeps/b/pause": [409, { detail: "It ends already." }],
  });
  for (const name of ["one", "two", "over"]) await choose(name);
  expect(bulk().getByText("3 sweeps chosen")).toBeTruthy();
  await userEvent.click(bulk().getByRole("button", { name: "Pause" }));
  const told = await screen.findByText("one: paused");
  expect([...(told.parentElement?.children ?? [])].map((item) => item.textContent)).toEqual([
    "one: paused",
    "two: It ends already.",
    "over: left as it is: it is failed",
  ]);
  expect(asked.filter(({ call }) => call.startsWith("POST")).map(({ call }) => call)).toEqual([
    "POST /sweeps/a/pause",
    "POST /sweeps/b/pause",
  ]);
});

it("lets a viewer compare, and no more", async () => {
  const { router } = await drawApp("/sweeps", { ...listed, "GET /me": [200, { ...local, role: "viewer" }] });
  await choose("one");
  await choose("two");
  expect(
    bulk()
      .getAllByRole("button")
      .map((button) => button.textContent),
  ).toEqual(["Compare", "Choose none"]);
  await userEvent.click(bulk().getByRole("button", { name: "Compare" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/compare"));
});

it("takes the order from a field, too, which phones show", async () => {
  const { router } = await drawApp("/sweeps?state=failed", listed);
  const field = await screen.findByRole<HTMLSelectElement>("combobox", { name: "Order" });
  expect(field.value).toBe("-created_at");
  await userEvent.selectOptions(field, "By name");
  await waitFor(() => expect(router.state.location.search).toEqual({ state: ["failed"], sort: "name" }));
});
