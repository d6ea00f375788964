import {
  autocompletion,
  insertCompletionText,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip, type EditorView } from "@codemirror/view";
import { help, offers, type Offer, type Schema } from "@/lib/sweepSchema";

const WORD = /[\w.-]*/;

/** fieldHelp suggests fields and values while the user types, and describes the field under the pointer. It leaves Tab alone. */
export function fieldHelp(schema: () => Schema | undefined): Extension {
  return [
    autocompletion({ override: [(context) => suggestions(schema(), context)], icons: false }),
    hoverTooltip((view, at) => {
      const known = schema();
      const line = view.state.doc.lineAt(at);
      const before = /[\w.-]*$/.exec(line.text.slice(0, at - line.from))?.[0] ?? "";
      const after = WORD.exec(line.text.slice(at - line.from))?.[0] ?? "";
      const [from, to] = [at - before.length, at + after.length];
      const text = known && from < to ? help(known, view.state.doc.toString(), { from, to }) : "";
      if (text === "") return null;

      return {
        pos: from,
        end: to,
        above: true,
        create: () => {
          const dom = document.createElement("div");
          dom.className = "cm-fieldhelp";
          dom.textContent = text;

          return { dom };
        },
      };
    }),
  ];
}

function suggestions(schema: Schema | undefined, context: CompletionContext): CompletionResult | null {
  const { state, pos, explicit } = context;
  const from = context.matchBefore(WORD)?.from ?? pos;
  const line = state.doc.lineAt(pos);
  // Without a letter, complete only on request and for the value of a field that was just
  // named.
  if (!schema || (!explicit && from === pos && !/: $/.test(line.text.slice(0, pos - line.from)))) return null;
  const to = pos + (WORD.exec(line.text.slice(pos - line.from))?.[0].length ?? 0);
  const options = offers(schema, state.doc.toString(), { from, to }).map(completion);

  return options.length === 0 ? null : { from, to, options, validFor: /^[\w.-]*$/ };
}

/** completion is an offer that is written; offers are in their order, not in that of the alphabet. */
function completion({ text, kind, help: info }: Offer, i: number): Completion {
  return {
    label: text,
    boost: -i,
    ...(kind !== "" && { detail: kind, apply: writeField }),
    ...(info !== "" && { info }),
  };
}

/** writeField writes a field's name, and a missing colon, and suggests its values. The colon is behind the quote of a quoted name. */
function writeField(view: EditorView, { label }: Completion, from: number, to: number): void {
  const quote = /^["']/.exec(view.state.sliceDoc(to, to + 1))?.[0] ?? "";
  const end = to + quote.length;
  const named = /^\s*:/.test(view.state.sliceDoc(end, end + 20));
  view.dispatch(insertCompletionText(view.state, label + quote + (named ? "" : ": "), from, end));
  if (!named) startCompletion(view);
}
