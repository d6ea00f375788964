import { Textarea, TextInput, type TextareaProps, type TextInputProps } from "@mantine/core";
import { useDraft, type Same } from "@/lib/useDraft";

interface Props {
  value: string;
  onText: (text: string) => void;
  same?: Same;
}

/** A field of a sweep file that keeps the user's text as typed. */
export function DraftInput({ value, onText, same, ...rest }: Props & Omit<TextInputProps, "value" | "onChange">) {
  const [text, type] = useDraft(value, onText, same);

  return <TextInput {...rest} value={text} onChange={(event) => type(event.currentTarget.value)} />;
}

/** The same with several lines. */
export function DraftArea({ value, onText, same, ...rest }: Props & Omit<TextareaProps, "value" | "onChange">) {
  const [text, type] = useDraft(value, onText, same);

  return <Textarea {...rest} value={text} onChange={(event) => type(event.currentTarget.value)} />;
}
