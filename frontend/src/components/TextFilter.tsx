import { TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useDebounced } from "@/lib/useDebounced";

interface Props {
  label: string;
  /** text is the list's present filter. */
  text: string;
  onText: (text: string) => void;
}

/** A filter of a list by a text; the list follows once the typing pauses. */
export function TextFilter({ label, text, onText }: Props) {
  const [typed, setTyped] = useState(text);
  const [shown, setShown] = useState(text);
  const settled = useDebounced(typed);
  const tell = useRef(onText);

  // The address changed by another way, such as the browser's back button.
  if (text !== shown) {
    setShown(text);
    setTyped(text);
  }

  useEffect(() => {
    tell.current = onText;
  }, [onText]);
  useEffect(() => {
    if (settled === typed && settled !== text) tell.current(settled);
  }, [settled]); // eslint-disable-line react-hooks/exhaustive-deps -- only a pause in typing filters the list

  return (
    <TextInput
      size="xs"
      aria-label={label}
      placeholder={label}
      maxLength={200}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      style={{ width: 160 }}
    />
  );
}
