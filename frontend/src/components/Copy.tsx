import { Button, type ButtonProps } from "@mantine/core";
import { useRef, useState } from "react";

const words = { ready: "Copy", copied: "Copied", failed: "Select it and copy it yourself" };

/** Copies a text. Over plain HTTP a browser has no clipboard for scripts, so the older way is tried too. */
export function Copy({ text, ...rest }: { text: string } & ButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  const [state, setState] = useState<keyof typeof words>("ready");

  const copy = async () => {
    setState((await written(text, button.current)) ? "copied" : "failed");
  };

  return (
    <Button {...rest} ref={button} onClick={() => void copy()} aria-live="polite">
      {words[state]}
    </Button>
  );
}

async function written(text: string, beside: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);

    return true;
  } catch {
    return selected(text, beside);
  }
}

/** selected copies from a field beside the button: a dialog lets the focus go nowhere else. */
function selected(text: string, beside: HTMLElement | null): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  (beside?.parentElement ?? document.body).append(field);
  field.select();

  try {
    return document.execCommand("copy"); // eslint-disable-line @typescript-eslint/no-deprecated -- the only way over plain HTTP
  } catch {
    return false;
  } finally {
    field.remove();
    beside?.focus();
  }
}
