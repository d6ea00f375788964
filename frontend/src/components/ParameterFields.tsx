import { Button, Checkbox, NativeSelect } from "@mantine/core";
import { useId } from "react";
import { DraftInput } from "@/components/DraftField";
import { listed, type ParameterRow } from "@/lib/sweepFile";
import type { Same } from "@/lib/useDraft";

interface Props {
  row: ParameterRow;
  /** problems by the key of the parameter that they are about; "" = the whole of it. */
  problems: Map<string, string>;
  onChange: (row: ParameterRow) => void;
  onRemove: () => void;
}

const trimmed: Same = (text, value) => text.trim() === value.trim();
const sameList: Same = (text, value) => JSON.stringify(listed(text)) === JSON.stringify(listed(value));

const kinds = [
  { value: "float", label: "number" },
  { value: "int", label: "whole number" },
  { value: "categorical", label: "choices" },
  { value: "fixed", label: "fixed" },
];

/** One parameter: its name, its type, and the values it may have. */
export function ParameterFields({ row, problems, onChange, onRemove }: Props) {
  const othersId = useId();
  const name = row.name === "" ? "parameter" : row.name;
  const range = row.kind === "float" || row.kind === "int";
  const shown = ["name", ...(row.kind === "other" ? [] : ["type"]), ...(range ? ["min", "max"] : ["values", "value"])];
  const others = [...problems].filter(([key]) => !shown.includes(key)).map(([, detail]) => detail);
  const input = (key: "min" | "max" | "values", label: string) => (
    <DraftInput
      size="xs"
      label={label}
      aria-label={`${label} of ${name}`}
      value={row[key]}
      error={problems.get(key) ?? (key === "values" ? problems.get("value") : undefined)}
      same={key === "values" && row.kind === "categorical" ? sameList : trimmed}
      onText={(text) => onChange({ ...row, [key]: text })}
      style={{ flex: key === "values" ? "2 1 140px" : "1 1 70px" }}
    />
  );

  return (
    <div
      className="card"
      style={{ padding: 10 }}
      role="group"
      aria-label={`Parameter ${row.name}`.trim()}
      aria-describedby={others.length > 0 ? othersId : undefined}
    >
      <div style={{ display: "flex", flexWrap: "wrap", gap: 8, alignItems: "flex-start" }}>
        <DraftInput
          size="xs"
          label="Name"
          aria-label={`Name of ${name}`}
          value={row.name}
          error={problems.get("name")}
          onText={(text) => onChange({ ...row, name: text })}
          style={{ flex: "1 1 100px" }}
        />
        {row.kind === "other" ? (
          <p style={{ flex: "2 1 160px", margin: 0, fontSize: 13 }}>Edit its values in the YAML.</p>
        ) : (
          <NativeSelect
            size="xs"
            label="Type"
            aria-label={`Type of ${name}`}
            value={row.kind}
            error={problems.get("type")}
            data={kinds}
            onChange={(event) => onChange({ ...row, kind: event.currentTarget.value as ParameterRow["kind"] })}
            style={{ flex: "1 1 110px" }}
          />
        )}
        {range && input("min", "From")}
        {range && input("max", "To")}
        {row.kind === "categorical" && input("values", "Choices, with commas")}
        {row.kind === "fixed" && input("values", "Value")}
        <Button size="xs" mt={22} variant="subtle" color="gray" onClick={onRemove} aria-label={`Remove ${name}`}>
          Remove
        </Button>
      </div>
      <div style={{ display: "flex", gap: 16, marginTop: 8 }}>
        {range && (
          <Checkbox
            size="xs"
            label="Log scale"
            checked={row.log}
            onChange={(event) => onChange({ ...row, log: event.currentTarget.checked })}
          />
        )}
        {row.kind !== "other" && (
          <Checkbox
            size="xs"
            label="Changes memory"
            checked={row.memory}
            onChange={(event) => onChange({ ...row, memory: event.currentTarget.checked })}
          />
        )}
      </div>
      <div id={othersId}>
        {others.map((detail) => (
          <p key={detail} style={{ color: "var(--mantine-color-error)", fontSize: 13, margin: "6px 0 0" }} role="alert">
            {detail}
          </p>
        ))}
      </div>
    </div>
  );
}
