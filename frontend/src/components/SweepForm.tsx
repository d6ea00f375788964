import { Button, Group, NativeSelect } from "@mantine/core";
import { DraftArea, DraftInput } from "@/components/DraftField";
import { ParameterFields } from "@/components/ParameterFields";
import {
  commandLines,
  removeRow,
  setCommand,
  setField,
  setRow,
  setStopRule,
  typed,
  type FormModel,
  type Kept,
  type Path,
  type StopField,
} from "@/lib/sweepFile";
import type { Same } from "@/lib/useDraft";
import { useId, type RefObject } from "react";

/** A parameter's values under other types, and its name at that time: the editor may set another in its place. */
export interface KeptRow {
  name: string;
  had: Kept;
}

interface Props {
  text: string;
  model: FormModel;
  /** kept is of each parameter of this file, by its place; another file begins with none. */
  kept: RefObject<KeptRow[]>;
  /** problems by JSON pointer. */
  problems: Map<string, string>;
  onChange: (text: string) => void;
}

const trimmed: Same = (text, value) => text.trim() === value.trim();
const sameLines: Same = (text, value) => commandLines(text).join("\n") === commandLines(value).join("\n");

const rules = ["asha", "median", "patience", "threshold"];

/** What each rule needs, beside its name. */
const ruleFields: Record<string, { field: StopField; label: string }[]> = {
  asha: [
    { field: "min", label: "First epoch judged" },
    { field: "max", label: "Last epoch" },
  ],
  patience: [{ field: "patience", label: "Reports without an improvement" }],
  threshold: [
    { field: "above", label: "Stop above" },
    { field: "below", label: "Stop below" },
  ],
};

const algorithms = ["auto", "gp", "grid", "list", "random", "sobol", "tpe"];

/** The main fields of a sweep file. Each change is made in the text, which holds all of it. */
export function SweepForm({ text, model, problems, kept, onChange }: Props) {
  const set = (path: Path, value: string) => onChange(setField(text, path, value));
  const setNumber = (path: Path, value: string) =>
    onChange(setField(text, path, value.trim() === "" ? "" : typed(value)));
  const problem = (pointer: string) => problems.get(pointer);
  const listId = useId();
  const ofList = problem("/parameters");

  return (
    <div style={{ display: "grid", gap: 12 }}>
      <DraftInput label="Name" value={model.name} error={problem("/name")} onText={(value) => set(["name"], value)} />
      <DraftInput
        label="Image"
        description="A container image that is on your machines"
        value={model.image}
        error={problem("/image")}
        onText={(value) => set(["image"], value)}
      />
      <DraftArea
        label="Command"
        description={
          model.commandInText
            ? "An argument has several lines: edit it in the YAML"
            : "One argument a line; {{name}} stands for the value of a parameter"
        }
        readOnly={model.commandInText}
        autosize
        minRows={3}
        maxRows={10}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
        value={model.command}
        error={together([...problemsBelow(problems, "/command").values()])}
        same={sameLines}
        onText={(lines) => onChange(setCommand(text, lines))}
      />
      <fieldset
        style={{ border: 0, padding: 0, margin: 0, display: "grid", gap: 8 }}
        aria-describedby={ofList === undefined ? undefined : listId}
      >
        <legend style={{ fontWeight: 500, fontSize: 14, padding: 0, marginBottom: 4 }}>Parameters</legend>
        {ofList !== undefined && (
          <p id={listId} style={{ color: "var(--mantine-color-error)", fontSize: 13, margin: 0 }} role="alert">
            {ofList}
          </p>
        )}
        {model.parameters.map((row, i) => (
          <ParameterFields
            key={i}
            row={row}
            problems={problemsBelow(problems, `/parameters/${i}`)}
            onChange={(next) => {
              const before = kept.current[i];
              const had = before?.name === row.name ? before.had : new Map<string, unknown>();
              kept.current[i] = { name: next.name, had };
              onChange(setRow(text, i, next, had));
            }}
            onRemove={() => {
              kept.current.splice(i, 1);
              onChange(removeRow(text, i));
            }}
          />
        ))}
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() =>
              onChange(
                setRow(text, model.parameters.length, {
                  name: freeName(model),
                  kind: "float",
                  min: "0.0001",
                  max: "0.1",
                  log: true,
                  values: "",
                  memory: false,
                }),
              )
            }
          >
            Add a parameter
          </Button>
        </Group>
      </fieldset>
      <Group grow align="flex-start">
        <DraftInput
          label="Metric"
          description={model.objectiveInText && "A list of objectives: edit it in the YAML"}
          readOnly={model.objectiveInText}
          inputWrapperOrder={["label", "input", "description", "error"]}
          value={model.metric}
          error={
            model.objectiveInText
              ? together([...problemsBelow(problems, "/objective").values()])
              : (problem("/objective/metric") ?? problem("/objective"))
          }
          onText={(value) => set(["objective", "metric"], value)}
        />
        <NativeSelect
          label="Goal"
          value={model.goal}
          disabled={model.objectiveInText}
          data={[{ value: "", label: model.objectiveInText ? "in the YAML" : "not set" }, "maximize", "minimize"]}
          error={problem("/objective/goal")}
          onChange={(event) => set(["objective", "goal"], event.currentTarget.value)}
        />
        <NativeSelect
          label="Algorithm"
          value={model.algorithm}
          data={[{ value: "", label: "not set" }, ...algorithms]}
          error={problem("/search/algorithm") ?? problem("/search")}
          onChange={(event) => set(["search", "algorithm"], event.currentTarget.value)}
        />
      </Group>
      <Group grow align="flex-start">
        <NativeSelect
          label="Early stopping"
          value={model.earlyStop("rule")}
          data={[{ value: "", label: "none" }, ...rules]}
          error={problem("/early_stop/rule") ?? problem("/early_stop")}
          onChange={(event) => onChange(setStopRule(text, event.currentTarget.value))}
        />
        {(ruleFields[model.earlyStop("rule")] ?? []).map(({ field, label }) => (
          <DraftInput
            key={field}
            label={label}
            inputMode="decimal"
            value={model.earlyStop(field)}
            error={problem(`/early_stop/${field}`)}
            same={trimmed}
            onText={(value) => setNumber(["early_stop", field], value)}
          />
        ))}
      </Group>
      <Group grow align="flex-start">
        <DraftInput
          label="Trials at most"
          inputMode="numeric"
          value={model.maxTrials}
          error={problem("/limits/max_trials") ?? problem("/limits")}
          same={trimmed}
          onText={(value) => setNumber(["limits", "max_trials"], value)}
        />
        <DraftInput
          label="Trials at once"
          placeholder="auto: as many as fit"
          value={model.maxParallel}
          error={problem("/limits/max_parallel")}
          same={trimmed}
          onText={(value) => setNumber(["limits", "max_parallel"], value)}
        />
      </Group>
    </div>
  );
}

/** problemsBelow are the problems at a pointer or below it, grouped by the next part of their path; "" = at it. */
function problemsBelow(problems: Map<string, string>, pointer: string): Map<string, string> {
  const below = new Map<string, string>();
  for (const [at, detail] of problems) {
    if (at !== pointer && !at.startsWith(`${pointer}/`)) continue;
    const key = at.slice(pointer.length + 1).split("/")[0] ?? "";
    const before = below.get(key);
    below.set(key, before === undefined ? detail : `${before} ${detail}`);
  }

  return below;
}

/** together is every text, undefined = none: a field shows one error. */
function together(texts: string[]): string | undefined {
  return texts.length === 0 ? undefined : texts.join(" ");
}

function freeName(model: FormModel): string {
  const names = new Set(model.parameters.map((row) => row.name));
  for (let i = model.parameters.length + 1; ; i++) if (!names.has(`parameter_${i}`)) return `parameter_${i}`;
}
