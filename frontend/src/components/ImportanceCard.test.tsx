import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ImportanceCard } from "@/components/ImportanceCard";
import { draw } from "@/test/draw";
import { insight } from "@/test/factories/insight";

it("shows a row for each parameter, also for one that too few trials have", async () => {
  const importance = [
    { parameter: "kind", importance: 1, trials: 40 },
    { parameter: "depth", trials: 15 },
  ];
  await draw(<ImportanceCard insight={insight({ importance })} metric="acc" />);
  expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual([
    "ParameterImportance",
    "kind100 %",
    "depthtoo few trials",
  ]);
  expect(screen.getByText(/the best 25 % of 40 trials by acc/)).toBeTruthy();
  expect(screen.queryByText(/do not count/)).toBeNull();
});

it("says that the oldest trials do not count", async () => {
  await draw(<ImportanceCard insight={insight({ from_trial: 4001 })} metric="acc" />);
  expect(screen.getByText(/Trials before 4,001 do not count/)).toBeTruthy();
});

it("says instead why there is no importance", async () => {
  const problem = "This needs 20 trials with a value; there are 12. With fewer, chance decides.";
  await draw(
    <ImportanceCard
      insight={insight({ importance: [], importance_of: { trials: 12, top_share: 0.25, problem } })}
      metric="acc"
    />,
  );
  expect(screen.getByText(problem)).toBeTruthy();
  expect(screen.queryByRole("table")).toBeNull();
});
