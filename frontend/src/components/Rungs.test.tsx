import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { Attempts } from "@/components/Attempts";
import { Rungs } from "@/components/Rungs";
import { draw } from "@/test/draw";
import { attempt } from "@/test/factories/trial";

it("says at each step whether the trial went on, and why", async () => {
  const at = "2026-01-01T00:00:10Z";
  await draw(
    <Rungs
      metric="acc"
      rungs={[
        { rung: 0, step: 1, value: 0.5, stop: false, why: "number 1 of 4", at },
        { rung: 1, step: 3, stop: true, why: "its acc is NaN", at },
      ]}
    />,
  );

  const rows = within(screen.getByRole("table", { name: "Early stopping" })).getAllByRole("row");
  const cells = rows.slice(1).map((row) =>
    within(row)
      .getAllByRole("cell")
      .slice(0, 4)
      .map((cell) => cell.textContent),
  );
  expect(cells).toEqual([
    ["1", "0.5", "goes on", "number 1 of 4"],
    ["3", "no number", "stopped", "its acc is NaN"],
  ]);
});

it("does not call a stopped attempt a failure", async () => {
  await draw(
    <Attempts
      attempts={[attempt({ failure_kind: "pruned", exit_code: 75 })]}
      chosen="a1"
      hostNames={new Map()}
      onChoose={() => undefined}
    />,
  );
  const ending = screen.getByText("Stopped early");
  expect(ending.querySelector("svg")?.getAttribute("fill")).toBe("var(--wait)");
});
