import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, type Answers } from "@/test/app";

afterEach(() => vi.unstubAllGlobals());

const hub = {
  name: "hub",
  version: 2,
  key: "age1",
  created_at: "2026-01-01T00:00:00Z",
  created_by: "ada",
  updated_at: "2026-01-02T00:00:00Z",
  updated_by: "bob",
};

async function draw(change: Answers, role = "admin") {
  const answers: Answers = {
    "GET /me": [200, { name: "ada", role, known_by: "session" }],
    "GET /tokens": [200, { data: [] }],
    "GET /secrets": [200, { data: [hub] }],
    ...change,
  };

  return { ...(await drawApp("/settings", answers)), answers };
}

async function fill(name: string, value: string) {
  const section = within(await screen.findByRole("region", { name: "Secrets" }));
  await userEvent.type(section.getByLabelText(/^Secret /), name);
  await userEvent.type(section.getByLabelText(/^Value/), value);
  await userEvent.click(section.getByRole("button", { name: "Store the secret" }));

  return section;
}

it("stores a value as it was typed, empties the form, and passes on what the server warns of", async () => {
  const detail = "The value has less than 4 bytes: it is not masked in logs.";
  const { asked } = await draw({
    "PUT /secrets/hub": [200, { secret: { ...hub, version: 3 }, warnings: [{ code: "w", pointer: "/value", detail }] }],
  });
  const section = await fill(" hub ", "a b{Enter}");
  expect(await section.findByText(/hub is stored as version 3/)).toBeTruthy();
  expect(section.getByText(detail)).toBeTruthy();
  expect(JSON.parse(asked.find((one) => one.call === "PUT /secrets/hub")?.body ?? "{}")).toEqual({ value: "a b\n" });
  expect(section.getByLabelText<HTMLTextAreaElement>(/^Value/).value).toBe("");
});

it("keeps what was typed when the server refuses it", async () => {
  await draw({ "PUT /secrets/x": [409, { detail: "The server has no key: start it with --secrets-key." }] });
  const section = await fill("x", "abc");
  expect(await section.findByText(/start it with --secrets-key/)).toBeTruthy();
  expect(section.getByLabelText<HTMLTextAreaElement>(/^Value/).value).toBe("abc");
});

it("says which secret goes, and why it cannot", async () => {
  await draw({ "DELETE /secrets/hub": [409, { detail: "Sweep 1 mounts it." }] });
  await userEvent.click(await screen.findByRole("button", { name: "Delete hub" }));
  const question = within(await screen.findByRole("dialog"));
  await userEvent.click(question.getByRole("button", { name: "Delete" }));
  expect(await question.findByText(/Sweep 1 mounts it/)).toBeTruthy();
});

it("is not there for those who may not store", async () => {
  await draw({}, "operator");
  expect(await screen.findByRole("region", { name: "You" })).toBeTruthy();
  expect(screen.queryByRole("region", { name: "Secrets" })).toBeNull();
});
