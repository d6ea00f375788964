import { useState } from "react";

/** A field's own text, and the handler of each typed text. */
export type Draft = [text: string, type: (text: string) => void];

/**
 * useDraft keeps the text of a field as the user types it: "0." and "relu," mean
 * nothing new yet, and the file's value must not overwrite them. A value replaces
 * the text only when it changed to something that the text does not mean.
 */
export function useDraft(value: string, commit: (text: string) => void, same: Same = exactly): Draft {
  const [draft, setDraft] = useState({ text: value, value });
  let { text } = draft;

  if (draft.value !== value) {
    text = same(draft.text, value) ? draft.text : value;
    setDraft({ text, value });
  }

  return [
    text,
    (next) => {
      setDraft({ text: next, value });
      commit(next);
    },
  ];
}

/** Same says that a typed text means a value. */
export type Same = (text: string, value: string) => boolean;

const exactly: Same = (text, value) => text === value;
