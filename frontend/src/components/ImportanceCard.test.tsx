import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { ImportanceCard } from "@/components/ImportanceCard";
import { importances } from "@/lib/overview/importance";
import { scored } from "@/lib/overview/sample";
import { draw } from "@/test/draw";
import { trial } from "@/test/factories/trial";

/** Trials whose value rises with a parameter that half of them have. */
const conditional = (n: number) =>
  Array.from({ length: n }, (_, i) =>
    trial({
      number: i + 1,
      value: Math.floor(i / 2),
      params: i % 2 ? { kind: "a", depth: i } : { kind: "b", width: i },
    }),
  );

it.each([
  [30, /of those that at least 20 trials have, no parameter stands out\. Too few have depth, width\./],
  [24, /no parameter stands out\. Too few have depth, width\./],
])("judges no parameter that too few of %d trials have", async (n, says) => {
  const rows = conditional(n);
  const list = importances(scored(rows), "maximize", ["kind", "depth", "width"]);
  await draw(<ImportanceCard list={list} trials={n} metric="acc" part={false} />);
  expect(screen.getByText(says)).toBeTruthy();
});

it("shows a table where no parameter can be judged", async () => {
  const list = importances(scored(conditional(30)), "maximize", ["depth", "width"]);
  await draw(<ImportanceCard list={list} trials={30} metric="acc" part={false} />);
  expect(screen.getAllByText("too few trials")).toHaveLength(2);
});
