import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { readDraft } from "@/lib/draft";
import { drawApp, type Answers } from "@/test/app";
import { preview, sweep } from "@/test/factories/sweep";

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.unstubAllGlobals());

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

it("asks before a file replaces what was typed, and opens the same file twice", async () => {
  await drawApp("/sweeps/new", valid);
  await rename("mine");
  const input = document.querySelector<HTMLInputElement>("input[type=file]");
  if (!input) throw new Error("no field for files");
  const file = new File([], "a.yaml", { type: "text/yaml" });
  await userEvent.upload(input, Object.assign(file, { text: () => Promise.resolve("name: filed\r\n") }));
  expect(await screen.findByText(/replaced by the file a.yaml/)).toBeTruthy();
  expect((await name()).value).toBe("mine");
  expect(input.value).toBe("");
  await userEvent.click(within("dialog", "Open"));
  await waitFor(async () => expect((await name()).value).toBe("filed"));
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
