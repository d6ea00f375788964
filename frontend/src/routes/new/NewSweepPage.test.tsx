import { act, cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { EditorView } from "@codemirror/view";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readDraft } from "@/lib/draft";
import { drawApp, hold, type Answers } from "@/test/app";
import { preview, sweep } from "@/test/factories/sweep";

beforeEach(() => sessionStorage.clear());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
});

const valid: Answers = {
  "POST /sweep-validations": [200, { valid: true, problems: [], warnings: [] }],
  "POST /sweep-previews": [200, preview()],
  "GET /sweeps": [200, { data: [sweep()] }],
  "GET /sweep-schema.json": [200, { properties: { name: { type: "string" } } }],
};
const name = () => screen.findByRole<HTMLInputElement>("textbox", { name: "Name" });

async function rename(to: string) {
  const field = await name();
  await userEvent.clear(field);
  await userEvent.type(field, to);
}

it("takes its own first text for no edit", async () => {
  await drawApp("/sweeps/new?from=example", valid);
  await name();
  await waitFor(() => expect(document.querySelector(".cm-content")).toBeTruthy());
  expect(readDraft("example")).toBeNull();
});

it("keeps what was typed for each beginning, and starts over when asked", async () => {
  const { router } = await drawApp("/sweeps/new", valid);
  await rename("mine");
  await router.navigate({ to: "/sweeps/new", search: { from: "example" } });
  await waitFor(async () => expect((await name()).value).toBe("digits-transfer"));
  await router.navigate({ to: "/sweeps/new", search: {} });
  await waitFor(async () => expect((await name()).value).toBe("mine"));

  await userEvent.click(screen.getByRole("button", { name: "Start over" }));
  expect((await name()).value).toBe("mine");
  await userEvent.click(within("dialog", "Start over"));
  await waitFor(async () => expect((await name()).value).toBe("my-sweep"));
  expect(readDraft("")).toBeNull();
});

async function open(text: string) {
  const input = document.querySelector<HTMLInputElement>("input[type=file]");
  if (!input) throw new Error("no field for files");
  const file = new File([], "a.yaml", { type: "text/yaml" });
  await userEvent.upload(input, Object.assign(file, { text: () => Promise.resolve(text) }));

  return input;
}

it("asks before a file replaces what was typed, and opens the same file twice", async () => {
  await drawApp("/sweeps/new", valid);
  await rename("mine");
  const input = await open("name: filed\r\n");
  expect(await screen.findByText(/replaced by the file a.yaml/)).toBeTruthy();
  expect((await name()).value).toBe("mine");
  expect(input.value).toBe("");
  await userEvent.click(within("dialog", "Open"));
  await waitFor(async () => expect((await name()).value).toBe("filed"));
});

it("keeps the range of a parameter while the editor is typed in, and brings none into another file", async () => {
  await drawApp("/sweeps/new", valid);
  const as = async (type: string) => userEvent.selectOptions(await screen.findByLabelText("Type of lr"), type);
  await as("choices");
  await waitFor(() => expect(document.querySelector(".cm-editor")).toBeTruthy());
  const editor = EditorView.findFromDOM(document.querySelector<HTMLElement>(".cm-editor") ?? document.body);
  act(() => editor?.dispatch({ changes: { from: 0, insert: "[" } }));
  expect(await screen.findByText(/The YAML cannot be read/)).toBeTruthy();
  act(() => editor?.dispatch({ changes: { from: 0, to: 1, insert: "# a comment\n" } }));
  await as("number");
  expect(readDraft("")).toContain("# a comment");
  expect(readDraft("")).toContain("{name: lr, type: float, min: 0.0001, max: 0.1, log: true}");

  await as("choices");
  await open("parameters:\n  - {name: lr, values: [1]}\n");
  await userEvent.click(within("dialog", "Open"));
  await waitFor(() => expect(readDraft("")).not.toContain("comment"));
  await as("number");
  expect(readDraft("")).not.toContain("max: 0.1");
});

it("copies an earlier sweep, and shows a draft of it when it cannot be read", async () => {
  const text = JSON.stringify(sweep()).replace(/}$/, ',"spec":{"version":1,"name":"old","x":1.0}}');
  const answers: Answers = { ...valid, "GET /sweeps/abc": [200, text] };
  const { queries } = await drawApp("/sweeps/new?from=abc", answers);
  await waitFor(async () => expect((await name()).value).toBe("old"));
  await rename("newer");
  expect(readDraft("abc")).toBe("version: 1\nx: 1.0\nname: newer\n");
  answers["GET /sweeps/abc"] = [400, { detail: "Not now." }];
  await queries.invalidateQueries({ queryKey: ["sweep", "abc", "text"] });
  expect((await name()).value).toBe("newer");
});

it("forgets the draft once it is launched, and goes to the sweep only from its own page", async () => {
  const { router } = await drawApp("/sweeps/new?from=example", {
    ...valid,
    "POST /sweeps": [201, sweep()],
  });
  await rename("mine");
  expect(readDraft("example")).toContain("mine");
  const launch = screen.getByRole("button", { name: "Launch" });
  await waitFor(() => expect(launch.hasAttribute("disabled")).toBe(false), { timeout: 5000 });
  fireEvent.click(launch);
  await router.navigate({ to: "/probes" });
  await waitFor(() => expect(readDraft("example")).toBeNull());
  expect(router.state.location.pathname).toBe("/probes");
});

it("keeps what is typed while a launch is on its way", async () => {
  const { router } = await drawApp("/sweeps/new?from=example", { ...valid, "POST /sweeps": [201, sweep()] });
  await rename("mine");
  const launch = screen.getByRole("button", { name: "Launch" });
  await waitFor(() => expect(launch.hasAttribute("disabled")).toBe(false), { timeout: 5000 });
  const go = hold(/^POST .*\/sweeps$/);
  fireEvent.click(launch);
  await userEvent.type(await name(), "-next");
  go();
  await waitFor(() => expect(router.state.location.pathname).toBe(`/sweeps/${sweep().id}`));
  expect(readDraft("example")).toContain("mine-next");
  await router.navigate({ to: "/sweeps/new", search: { from: "example" } });
  expect((await name()).value).toBe("mine-next");
});

describe("the preview", () => {
  const missing = preview({ warnings: [{ code: "W_IMAGE_MISSING", pointer: "/image", detail: "No machine has it." }] });
  const turn = (hidden: boolean) => {
    vi.spyOn(document, "visibilityState", "get").mockReturnValue(hidden ? "hidden" : "visible");
    window.dispatchEvent(new Event("visibilitychange"));
  };

  async function shown(answers: Answers, sees: RegExp) {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const { asked } = await drawApp("/sweeps/new", answers);
    expect(await screen.findByText(sees)).toBeTruthy();
    const reads = () => asked.filter(({ call }) => call === "POST /sweep-previews").length;
    expect(reads()).toBe(1);

    return { reads, pass: (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms)) };
  }

  it("is read again while the image is missing, and what is typed stays", async () => {
    const answers: Answers = { ...valid, "POST /sweep-previews": [200, missing] };
    const { reads, pass } = await shown(answers, /No machine has it/);
    const field = await name();
    field.focus();
    answers["POST /sweep-previews"] = [200, preview()];
    await pass(16_000);
    await waitFor(() => expect(screen.queryByText(/No machine has it/)).toBeNull());
    expect(screen.getByText("What would happen")).toBeTruthy();
    expect(document.activeElement).toBe(field);
    const before = reads();
    await pass(60_000); // each may ask a registry
    expect(reads()).toBe(before);
    await pass(241_000);
    expect(reads()).toBe(before + 1);
  });

  it("is read often for five minutes while the image is missing, for whatever reason, then seldom", async () => {
    const login = preview({ warnings: [{ code: "W_IMAGE_LOGIN", pointer: "/image", detail: "Log in there." }] });
    const { reads, pass } = await shown({ ...valid, "POST /sweep-previews": [200, login] }, /Log in there/);
    await pass(290_000);
    expect(reads()).toBe(20);
    await pass(200_000);
    expect(reads()).toBe(20);
    await pass(110_000);
    expect(reads()).toBe(21);
  });

  it("is read often again when the image is missing later, and then each minute", async () => {
    const answers: Answers = { ...valid, "POST /sweep-previews": [200, missing] };
    const { reads, pass } = await shown(answers, /No machine has it/);
    await pass(290_000);
    expect(reads()).toBe(20);
    answers["POST /sweep-previews"] = [200, preview()];
    await pass(60_000);
    expect(reads()).toBe(21);
    answers["POST /sweep-previews"] = [200, missing];
    await pass(300_000);
    expect(reads()).toBe(22);
    await pass(290_000);
    expect(reads()).toBe(41);
    await pass(120_000);
    expect(reads()).toBe(43);
  });

  it("stays while it is read again, and when that fails", async () => {
    const answers: Answers = { ...valid, "POST /sweep-previews": [200, missing] };
    const { reads, pass } = await shown(answers, /No machine has it/);
    const panel = screen.getByRole("region", { name: "Preview" });
    answers["POST /sweep-previews"] = "never";
    await pass(16_000);
    expect(reads()).toBe(2);
    expect(screen.getByRole("region", { name: "Preview" }).textContent).toBe(panel.textContent);
    expect(panel.getAttribute("aria-busy")).toBe("false");
    cleanup();

    answers["POST /sweep-previews"] = [200, missing];
    const failing = await shown(answers, /No machine has it/);
    answers["POST /sweep-previews"] = [400, { detail: "Not now." }];
    await failing.pass(16_000);
    expect(screen.getByRole("alert").textContent).toContain("Previewing again failed. Not now.");
    expect(screen.getByText(/No machine has it/)).toBeTruthy();
  });

  it("is not read while the page is hidden, and is once it is shown", async () => {
    const { reads, pass } = await shown({ ...valid, "POST /sweep-previews": [200, missing] }, /No machine has it/);
    turn(true);
    await pass(60_000);
    expect(reads()).toBe(1);
    turn(false);
    await pass(100);
    expect(reads()).toBe(2);
  });

  it("is not read again while paused", async () => {
    localStorage.setItem("berth-live-paused", "yes");
    const { reads, pass } = await shown({ ...valid, "POST /sweep-previews": [200, missing] }, /No machine has it/);
    turn(true);
    turn(false);
    await pass(60_000);
    expect(reads()).toBe(1);
  });
});

it("edits without suggestions when their schema cannot be read, and reads it again", async () => {
  const answers: Answers = { ...valid, "GET /sweep-schema.json": [400, { detail: "Not now." }] };
  await drawApp("/sweeps/new", answers);
  expect((await screen.findByRole("alert")).textContent).toContain("Reading what the editor suggests failed. Not now.");
  expect(await screen.findByText("Tab leaves the editor.")).toBeTruthy();
  answers["GET /sweep-schema.json"] = valid["GET /sweep-schema.json"] ?? [404, {}];
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByText(/^Suggestions come as you type/)).toBeTruthy();
  expect(screen.queryByRole("alert")).toBeNull();
});

function within(role: string, button: string): HTMLElement {
  const found = [...screen.getByRole(role).querySelectorAll("button")].find((one) => one.textContent === button);
  if (!found) throw new Error(`no button ${button}`);

  return found;
}
