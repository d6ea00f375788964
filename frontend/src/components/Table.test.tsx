import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { num, right, Table } from "@/components/Table";
import { draw } from "@/test/draw";

const rows = (n: number) => Array.from({ length: n }, (_, i) => ({ key: String(i), trial: i, cells: [i, `t${i}`] }));

it("has the heads and cells of its columns, figures with theirs below each other", async () => {
  await draw(
    <Table
      label="Places"
      heads={["Place", num("Trial"), right("Memory")]}
      rows={[{ key: "a", cells: ["box", 3, "9 MiB"] }]}
    />,
  );
  const table = screen.getByRole("table", { name: "Places" });
  expect(
    within(table)
      .getAllByRole("columnheader")
      .map((head) => [head.textContent, head.className]),
  ).toEqual([
    ["Place", ""],
    ["Trial", ""],
    ["Memory", "right"],
  ]);
  expect(
    within(table)
      .getAllByRole("cell")
      .map((cell) => [cell.textContent, cell.className]),
  ).toEqual([
    ["box", ""],
    ["3", "num"],
    ["9 MiB", "num right"],
  ]);
  expect(screen.queryByRole("group")).toBeNull();
});

it("scrolls by keyboard when it stands for a chart, and says what it leaves out", async () => {
  await draw(<Table twin label="Trials" heads={["Trial", "Text"]} rows={rows(501)} />);
  expect(screen.getByRole("group", { name: "Trials" }).tabIndex).toBe(0);
  expect(screen.getByText("The first 500 rows of 501 rows.")).toBeTruthy();
  expect(screen.getAllByRole("row")).toHaveLength(501);
});

it("chooses the trial of a row", async () => {
  const toggle = vi.fn();
  await draw(<Table label="Trials" heads={["Trial", "Text"]} rows={rows(3)} chosen={new Set([2])} onToggle={toggle} />);
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Choose trial 2" }).checked).toBe(true);
  await userEvent.click(screen.getByRole("checkbox", { name: "Choose trial 1" }));
  expect(toggle).toHaveBeenCalledWith(1);
});

it("has a column each for names that are equal, and offers no more when as many are chosen as can be", async () => {
  const chosen = new Set(Array.from({ length: 500 }, (_, i) => i + 2));
  const wrong = vi.spyOn(console, "error");
  await draw(<Table label="Trials" heads={["lr", "lr"]} rows={rows(3)} chosen={chosen} onToggle={vi.fn()} />);
  expect(wrong).not.toHaveBeenCalled();
  wrong.mockRestore();
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Choose trial 1" }).disabled).toBe(true);
  expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Choose trial 2" }).disabled).toBe(false);
});
