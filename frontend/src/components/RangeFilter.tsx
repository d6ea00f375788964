import { TextInput } from "@mantine/core";
import { useState } from "react";

interface Props {
  label: string;
  value: number | undefined;
  onValue: (value: number | undefined) => void;
}

/** One end of a range of values; it takes effect with Enter, or when the field is left. */
export function RangeFilter({ label, value, onValue }: Props) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const [shown, setShown] = useState(value);
  const number = Number(text);
  const wrong = text.trim() !== "" && !Number.isFinite(number);

  if (value !== shown) {
    setShown(value);
    setText(value === undefined ? "" : String(value));
  }

  const apply = () => {
    if (!wrong) onValue(text.trim() === "" ? undefined : number);
  };

  return (
    <TextInput
      size="xs"
      aria-label={label}
      placeholder={label}
      inputMode="decimal"
      value={text}
      error={wrong && "Not a number"}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => {
        if (event.key === "Enter") apply();
      }}
      style={{ width: 130 }}
    />
  );
}
