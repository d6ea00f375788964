import { screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp } from "@/test/app";
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
