import { readFileSync } from "node:fs";
import { completionStatus } from "@codemirror/autocomplete";
import { EditorView } from "@codemirror/view";
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import YamlEditor from "@/components/YamlEditor";
import type { Schema } from "@/lib/sweepSchema";
import { draw } from "@/test/draw";

const schema = JSON.parse(readFileSync("../internal/sweepfile/spec/schema.json", "utf8")) as Schema;

async function open(text: string, known: Schema | null = schema) {
  const told = vi.fn();
  await draw(<YamlEditor text={text} marks={[]} schema={known ?? undefined} onChange={told} />);
  const content = screen.getByRole("textbox", { name: "Sweep file as YAML" });
  const view = EditorView.findFromDOM(content);
  if (!view) throw new Error("no editor");
  view.focus();

  return { told, content, view };
}

/** type writes a text at the end, as a person does. */
function type(view: EditorView, text: string): void {
  const end = view.state.doc.length;
  view.dispatch({
    changes: { from: end, insert: text },
    selection: { anchor: end + text.length },
    userEvent: "input.type",
  });
}
const list = () => screen.findByRole("listbox");
const texts = async () =>
  [...(await list()).querySelectorAll("li")].map((item) => item.querySelector(".cm-completionLabel")?.textContent);
/** press returns whether the key keeps its usual effect on the page. */
const press = (content: HTMLElement, key: string, more = {}) =>
  fireEvent.keyDown(content, { key, code: key === " " ? "Space" : key, keyCode: codes[key], ...more });
const codes: Record<string, number> = { Enter: 13, Escape: 27, Tab: 9, " ": 32 };

it("suggests a field as it is typed, writes it with Enter, and then its values", async () => {
  const { told, content, view } = await open("name: a\nobjective:\n  metric: b\n");
  type(view, "  go");
  expect(await texts()).toEqual(["goal"]);
  expect((await list()).textContent).toContain("choice");
  const later = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 100); // a press right after a list came is none of it
  expect(press(content, "Enter")).toBe(false);
  later.mockRestore();
  expect(view.state.doc.toString()).toBe("name: a\nobjective:\n  metric: b\n  goal: ");
  await waitFor(async () => expect(await texts()).toEqual(["maximize", "minimize"]));
  expect(told).toHaveBeenLastCalledWith("name: a\nobjective:\n  metric: b\n  goal: ");
});

it.each([
  ["its colon behind them", '{"objective": {"metric": "b", ""}}', '"goal": }}'],
  ["no second colon", '{"objective": {"metric": "b", "": 1}}', '"goal": 1}}'],
])("writes a field between quotes, as JSON has it, with %s", async (_, before, written) => {
  const { content, view } = await open(before);
  const at = before.lastIndexOf('"b", "') + 6;
  view.dispatch({ changes: { from: at, insert: "go" }, selection: { anchor: at + 2 }, userEvent: "input.type" });
  expect(await texts()).toEqual(["goal"]);
  const later = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 100);
  press(content, "Enter");
  later.mockRestore();
  expect(view.state.doc.toString()).toBe(before.slice(0, at - 1) + written);
});

it("suggests on Ctrl+Space, says what a field means, and closes with Escape", async () => {
  const { content, view } = await open("retry:\n  ");
  view.dispatch({ selection: { anchor: view.state.doc.length } });
  press(content, " ", { ctrlKey: true });
  expect(await texts()).toEqual(["max_attempts"]);
  expect(await screen.findByText("Default: 3.")).toBeTruthy();
  expect(press(content, "Escape")).toBe(false);
  await waitFor(() => expect(screen.queryByRole("listbox")).toBeNull());
});

it("leaves Tab to the page, also while it suggests, and says so", async () => {
  const { content, view } = await open("name: a\n");
  expect(press(content, "Tab")).toBe(true);
  type(view, "im");
  await list();
  expect(press(content, "Tab")).toBe(true);
  expect(view.state.doc.toString()).toBe("name: a\nim");
  const hint = document.getElementById(content.getAttribute("aria-describedby") ?? "");
  expect(hint?.textContent).toMatch(/Enter takes one, Escape closes them.*Tab leaves the editor\.$/);
});

it("suggests nothing, and promises nothing, while the schema is not known", async () => {
  const { content, view } = await open("", null);
  type(view, "na");
  press(content, " ", { ctrlKey: true });
  await waitFor(() => expect(completionStatus(view.state)).toBeNull()); // it has looked
  expect(screen.queryByRole("listbox")).toBeNull();
  expect(screen.getByText("Tab leaves the editor.")).toBeTruthy();
});
