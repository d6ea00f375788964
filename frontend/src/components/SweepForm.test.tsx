import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useEffect, useRef, useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { SweepForm, type KeptRow } from "@/components/SweepForm";
import { SweepPicker } from "@/components/SweepPicker";
import { readForm, setField } from "@/lib/sweepFile";
import { draw } from "@/test/draw";
import { sweep } from "@/test/factories/sweep";

const wrong = `name: a
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
  const model = readForm(wrong);
  if (!model) throw new Error("no form");
  await draw(<SweepForm text={wrong} model={model} problems={problems} kept={{ current: [] }} onChange={vi.fn()} />);
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

const start = `command: [python3]
parameters:
  - {name: lr, min: 1, max: 2, type: float}
  - {name: act, values: [tanh]}
limits: {max_trials: 24}
`;

let file = start;
const keep = (text: string) => {
  file = text;
};

const written = `command: [python3]
parameters:
  - {name: lr, type: float, min: 1e-4, max: 1.0, log: true}
  - {name: act, memory: true, values: ["32", relu, 1.0]}
  - {name: width, type: int, min: 1, max: 9, step: 2}
`;

function Page({ from = start }) {
  const [text, setText] = useState(from);
  useEffect(() => keep(text), [text]);
  const model = readForm(text);
  const kept = useRef<KeptRow[]>([]);

  return (
    <>
      <button type="button" onClick={() => setText(setField(text, ["parameters", 0, "min"], "7"))}>
        Elsewhere
      </button>
      <button type="button" onClick={() => setText(setField(text, ["parameters", 0, "name"], "rate"))}>
        Rename elsewhere
      </button>
      {model && <SweepForm text={text} model={model} problems={new Map()} kept={kept} onChange={setText} />}
    </>
  );
}

async function type(label: string, text: string) {
  const field = screen.getByLabelText<HTMLInputElement>(label);
  await userEvent.clear(field);
  await userEvent.type(field, text);

  return field;
}

it("leaves a list of objectives to the YAML, with its problems", async () => {
  const list = "name: a\nobjective:\n  - {metric: acc, target: 1} # first\n  - {metric: ms, goal: minimize}\n";
  const model = readForm(list);
  if (!model) throw new Error("no form");
  const change = vi.fn<(text: string) => void>();
  const problems = new Map([["/objective/0/target", "no target with several"]]);
  await draw(<SweepForm text={list} model={model} problems={problems} kept={{ current: [] }} onChange={change} />);
  const metric = screen.getByLabelText<HTMLInputElement>("Metric");
  expect(metric.value).toBe("acc, ms");
  expect(screen.getByText("A list of objectives: edit it in the YAML")).toBeTruthy();
  expect(screen.getByText("no target with several")).toBeTruthy();
  const goal = screen.getByLabelText<HTMLSelectElement>("Goal");
  expect(goal.disabled).toBe(true);
  expect(goal.selectedOptions[0]?.text).toBe("in the YAML");
  await userEvent.type(metric, "x");
  expect(change).not.toHaveBeenCalled();
  await userEvent.type(screen.getByLabelText("Name"), "b");
  expect(change).toHaveBeenLastCalledWith(list.replace("name: a", "name: ab"));
});

describe("SweepForm, key by key", () => {
  it.each(["0.5", "0.001", "-0.5", "1e-4", "1.0"])("takes the number %s", async (number) => {
    await draw(<Page />);
    expect((await type("From of lr", number)).value).toBe(number);
    expect(file).toContain(`min: ${number},`);
  });

  it("takes a list", async () => {
    await draw(<Page />);
    expect((await type("Choices, with commas of act", "relu, gelu, 0.5, ")).value).toBe("relu, gelu, 0.5, ");
    expect(file).toContain("values: [relu, gelu, 0.5]");
  });

  it("takes a command with Enter and spaces", async () => {
    await draw(<Page />);
    const field = await type("Command", "python3{Enter}-c {Enter}");
    expect(field.value).toBe("python3\n-c \n");
    expect(file).toContain('command: [python3, "-c "]');
  });

  it("takes a limit, and none", async () => {
    await draw(<Page />);
    await type("Trials at most", "100");
    expect(file).toContain("max_trials: 100");
    await type("Trials at once", "auto");
    expect(file).toContain("max_parallel: auto");
    await userEvent.clear(screen.getByLabelText("Trials at once"));
    expect(file).not.toContain("max_parallel");
  });

  const kinds = async (name: string, ...labels: string[]) => {
    for (const label of labels) await userEvent.selectOptions(screen.getByLabelText(`Type of ${name}`), label);
  };

  const logScale = (name: string) =>
    within(screen.getByRole("group", { name: `Parameter ${name}` })).getByLabelText<HTMLInputElement>("Log scale");

  it("has again what a type had, as it was written", async () => {
    await draw(<Page from={written} />);
    await kinds("lr", "whole number", "choices", "fixed", "number");
    expect(screen.getByLabelText<HTMLInputElement>("From of lr").value).toBe("1e-4");
    expect(logScale("lr").checked).toBe(true);
    expect(file).toBe(written);

    await kinds("act", "number", "fixed", "choices");
    expect(readForm(file)?.parameters[1]).toEqual(readForm(written)?.parameters[1]);
    expect(file).toContain(`values: ["32", relu, 1.0]`);

    await kinds("width", "choices", "whole number");
    expect(file).toContain("{name: width, type: int, min: 1, max: 9, step: 2}");
  });

  it("keeps what a type had for its own parameter, under its new name", async () => {
    await draw(<Page from={written} />);
    await kinds("lr", "choices");
    await userEvent.type(screen.getByLabelText("Name of lr"), "2");
    await userEvent.click(screen.getByRole("button", { name: "Remove act" }));
    await kinds("width", "choices");
    await userEvent.click(screen.getByRole("button", { name: "Remove width" }));
    await kinds("lr2", "number");
    expect(file).toContain("{name: lr2, type: float, min: 1e-4, max: 1.0, log: true}");
    expect(readForm(file)?.parameters).toHaveLength(1);
  });

  it("keeps it while another parameter passes through the same name", async () => {
    await draw(<Page from={written} />);
    await kinds("lr", "choices");
    const other = screen.getByLabelText("Name of width");
    await userEvent.clear(other);
    await userEvent.type(other, "lr2");
    await kinds("lr", "number");
    expect(file).toContain("{name: lr, type: float, min: 1e-4, max: 1.0, log: true}");
  });

  it("keeps it through an edit elsewhere, but not for another parameter in its place", async () => {
    await draw(<Page from={written} />);
    await kinds("lr", "choices");
    await userEvent.click(screen.getByText("Elsewhere"));
    await kinds("lr", "number");
    expect(file).toContain("type: float, max: 1.0, log: true}");

    await kinds("lr", "choices");
    await userEvent.click(screen.getByText("Rename elsewhere"));
    await kinds("rate", "number");
    expect(file).not.toContain("max: 1.0");
  });

  it("does not bring back what a person removed since", async () => {
    await draw(<Page from={written} />);
    await kinds("lr", "choices", "number");
    await userEvent.click(logScale("lr"));
    await kinds("lr", "choices", "number");
    expect(file).toContain("{name: lr, type: float, min: 1e-4, max: 1.0}");
  });

  it("shows what was changed elsewhere", async () => {
    await draw(<Page />);
    const field = await type("From of lr", "0.");
    await userEvent.click(screen.getByText("Elsewhere"));
    expect(field.value).toBe("7");
  });
});
