import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { SweepForm } from "@/components/SweepForm";
import { SweepPicker } from "@/components/SweepPicker";
import { readForm } from "@/lib/sweepFile";
import { draw } from "@/test/draw";
import { sweep } from "@/test/factories/sweep";

const text = `name: a
command: [x, y]
parameters:
  - {name: lr, type: float, min: 0, max: 1, log: true}
`;

it("shows each problem at its field, and others below the parameter", async () => {
  const problems = new Map([
    ["/parameters/0/min", "must be above 0"],
    ["/parameters/0/step", "no step with log"],
    ["/command/1", "unknown parameter"],
  ]);
  const model = readForm(text);
  if (!model) throw new Error("no form");
  await draw(<SweepForm text={text} model={model} problems={problems} onChange={vi.fn()} />);
  expect(screen.getByLabelText("From of lr").getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByText("must be above 0")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toBe("no step with log");
  expect(screen.getByText("unknown parameter")).toBeTruthy();
});

it("begins with an earlier sweep", async () => {
  const pick = vi.fn();
  await draw(<SweepPicker sweeps={[sweep()]} onPick={pick} />);
  await userEvent.selectOptions(screen.getByLabelText("Begin with an earlier sweep"), sweep().id);
  expect(pick).toHaveBeenCalledWith(sweep().id);
});
