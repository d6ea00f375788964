import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useId, useRef } from "react";
import { fieldHelp } from "@/components/fieldHelp";
import type { Schema } from "@/lib/sweepSchema";

const SUGGESTIONS =
  "Suggestions come as you type, or with Ctrl+Space (Option+I on a Mac): Enter takes one, Escape closes them. A field's help shows under the pointer, and beside its suggestion.";

export interface Mark {
  from: number;
  to: number;
  severity: "error" | "warning";
  message: string;
}

interface Props {
  text: string;
  marks: Mark[];
  /** schema is that of the file, for suggestions and help; undefined = not known. */
  schema: Schema | undefined;
  onChange: (text: string) => void;
}

// By variables of the page, so that one style serves light and dark.
const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--run)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
  { tag: tags.punctuation, color: "var(--mantine-color-dimmed)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--mantine-color-text)" },
  ".cm-gutters": { background: "var(--page)", color: "var(--mantine-color-dimmed)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "color-mix(in srgb, var(--run) 8%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--run) 25%, transparent) !important",
  },
  ".cm-tooltip": {
    background: "var(--surface)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--line)",
    maxWidth: "min(360px, 90vw)",
  },
  ".cm-fieldhelp, .cm-completionInfo": { padding: "6px 10px", fontSize: "13px" },
  ".cm-completionDetail": { color: "inherit", fontStyle: "normal" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    background: "color-mix(in srgb, var(--run) 22%, var(--surface))",
    color: "var(--mantine-color-text)",
    outline: "1px solid var(--run)",
  },
});

/**
 * The sweep file as text, each problem marked where it is, with suggestions and
 * help by its schema. Tab leaves the editor, as elsewhere on the page.
 */
export default function YamlEditor({ text, marks, schema, onChange }: Props) {
  const hint = useId();
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  const known = useRef(schema);
  const shown = useRef(text); // so that only the user's typing calls onChange

  useEffect(() => {
    changed.current = onChange;
    known.current = schema;
  }, [onChange, schema]);

  useEffect(() => {
    if (!box.current) return;
    const editor = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: shown.current,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          syntaxHighlighting(colors),
          look,
          yaml(),
          lintGutter(),
          fieldHelp(() => known.current),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({
            "aria-label": "Sweep file as YAML",
            "aria-describedby": hint,
            spellcheck: "false",
          }),
          EditorView.updateListener.of((update) => {
            const next = update.state.doc.toString();
            if (!update.docChanged || next === shown.current) return;
            shown.current = next;
            changed.current(next);
          }),
        ],
      }),
    });
    view.current = editor;

    return () => {
      editor.destroy();
      view.current = null;
    };
  }, [hint]);

  useEffect(() => {
    const editor = view.current;
    shown.current = text;
    if (!editor || editor.state.doc.toString() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const end = editor.state.doc.length;
    const diagnostics: Diagnostic[] = marks.map((mark) => ({
      ...mark,
      from: Math.min(mark.from, end),
      to: Math.min(Math.max(mark.to, mark.from), end),
    }));
    editor.dispatch(setDiagnostics(editor.state, diagnostics));
  }, [marks, text]);

  return (
    <>
      <div ref={box} className="editor" />
      <p id={hint} className="chartnote">
        {schema && `${SUGGESTIONS} `}Tab leaves the editor.
      </p>
    </>
  );
}
