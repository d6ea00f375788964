import type { QueryClient } from "@tanstack/react-query";
import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { keepDraft, readDraft } from "@/lib/draft";
import { meQuery } from "@/services/session";
import { drawApp, type Answers } from "@/test/app";

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.unstubAllGlobals());

const ada = { name: "ada", role: "admin", known_by: "session" };
const found: Answers = { "GET /me": [200, ada], "GET /probes": [200, { data: [] }] };

async function logOut() {
  await userEvent.click(await screen.findByRole("button", { name: "Account of ada" }));
  await userEvent.click(await screen.findByText("Log out"));
}

it("says when a log-out failed", async () => {
  await drawApp("/probes", { ...found, "DELETE /session": [503, { detail: "The database does not answer." }] });
  await logOut();
  expect(await screen.findByText(/database does not answer/)).toBeTruthy();
  expect(screen.getByRole("heading", { name: "Probes" })).toBeTruthy();
});

it("forgets drafts at a log-out", async () => {
  await drawApp("/probes", { ...found, "DELETE /session": [204, null] });
  keepDraft("", "name: mine");
  keepDraft("example", "name: other");
  await logOut();
  expect(await screen.findByText("Log in to Berth")).toBeTruthy();
  expect(readDraft("") ?? readDraft("example")).toBeNull();
});

it("reads everything anew when another tab logged in as someone else", async () => {
  const { asked, queries } = await drawApp("/probes", found);
  await screen.findByRole("heading", { name: "Probes" });
  await waitFor(() => expect(asked.filter((one) => one.call === "GET /probes")).toHaveLength(1));
  queries.setQueryData(meQuery.queryKey, { ...ada, name: "bob" } as never);
  await waitFor(() => expect(asked.filter((one) => one.call === "GET /probes")).toHaveLength(2));
});

it("keeps the page when the server stops answering", async () => {
  const answers = { ...found };
  const { queries } = await drawApp("/probes", answers);
  await screen.findByRole("heading", { name: "Probes" });
  answers["GET /me"] = [503, { detail: "Starting." }];
  await queries.invalidateQueries({ queryKey: ["me"] });
  expect(await screen.findByText(/Starting/, {}, { timeout: 8000 })).toBeTruthy();
  expect(screen.getByRole("heading", { name: "Probes" })).toBeTruthy();
});

it("does not show one person's draft to the next, whose session ended in another tab", async () => {
  const answers: Answers = {
    "GET /me": [200, { name: "ada", role: "admin", known_by: "session" }],
    "GET /probes": [200, { data: [] }],
    "POST /session": [201, { name: "bob", role: "operator", known_by: "session" }],
  };
  const { queries } = await drawApp("/probes", answers);
  await screen.findByRole("heading", { name: "Probes" });
  keepDraft("", "name: of-ada");
  answers["GET /me"] = [401, { detail: "Log in." }];
  await act(() => queries.invalidateQueries({ queryKey: ["me"] }));
  const field = await screen.findByLabelText(/token/i);
  answers["GET /me"] = [200, { name: "bob", role: "operator", known_by: "session" }];
  await userEvent.type(field, "berth_x");
  await userEvent.click(screen.getByRole("button", { name: /log in/i }));
  await screen.findByRole("button", { name: "Account of bob" });
  expect(readDraft("")).toBeNull();
});

it("keeps a draft of the same person", async () => {
  const { queries } = await drawApp("/probes", found);
  await screen.findByRole("heading", { name: "Probes" });
  keepDraft("", "name: of-ada");
  await act(() => queries.invalidateQueries({ queryKey: ["me"] }));
  expect(readDraft("")).toBe("name: of-ada");
});

const endsSession = async (answers: Answers, queries: QueryClient) => {
  await screen.findByRole("heading", { name: "Probes" });
  answers["GET /me"] = [401, { detail: "Log in." }];
  await act(() => queries.invalidateQueries({ queryKey: ["me"] }));
  await screen.findByText(/Your session has ended/);
};

it.each(["ada", "bob"])("forgets that a log-out failed once %s logs in", async (name) => {
  const answers: Answers = {
    ...found,
    "DELETE /session": [503, { detail: "The database does not answer." }],
    "POST /session": [201, { ...ada, name }],
  };
  const { queries } = await drawApp("/probes", answers);
  await logOut();
  await screen.findByText(/database does not answer/);
  await endsSession(answers, queries);
  answers["GET /me"] = [200, { ...ada, name }];
  await userEvent.type(screen.getByLabelText("Token"), "berth_x");
  await userEvent.click(screen.getByRole("button", { name: "Log in" }));
  await screen.findByRole("button", { name: `Account of ${name}` });
  expect(screen.queryByText(/database does not answer/)).toBeNull();
});

it("forgets that a log-out failed once another tab logged in as someone else", async () => {
  const { queries } = await drawApp("/probes", { ...found, "DELETE /session": [503, { detail: "Not now." }] });
  await logOut();
  await screen.findByText(/Not now/);
  act(() => void queries.setQueryData(meQuery.queryKey, { ...ada, name: "bob" } as never));
  await screen.findByRole("button", { name: "Account of bob" });
  expect(screen.queryByText(/Not now/)).toBeNull();
});

describe("a tab whose session ended", () => {
  const focus = () => fireEvent.focus(window);
  const asks = (asked: { call: string }[], call: string) => asked.filter((one) => one.call === call).length;

  it.each([
    ["has the focus again", focus],
    ["is shown again", () => fireEvent(document, new Event("visibilitychange"))],
  ])("shows its page again when it %s after a log-in in another tab", async (_, seen) => {
    const answers = { ...found };
    const { asked, queries } = await drawApp("/probes", answers);
    await waitFor(() => expect(asks(asked, "GET /probes")).toBe(1));
    await endsSession(answers, queries);
    seen();
    await waitFor(() => expect(asks(asked, "GET /me")).toBe(3));
    expect(screen.getByText(/Your session has ended/)).toBeTruthy();

    keepDraft("", "name: of-ada");
    answers["GET /me"] = [200, { ...ada, name: "bob" }];
    await userEvent.type(screen.getByLabelText("Token"), "berth_");
    seen();
    expect(await screen.findByRole("button", { name: "Account of bob" })).toBeTruthy();
    await waitFor(() => expect(asks(asked, "GET /probes")).toBe(2));
    expect(readDraft("")).toBeNull();
  });

  it("keeps what is typed while it looks", async () => {
    const answers = { ...found };
    const { queries } = await drawApp("/probes", answers);
    await endsSession(answers, queries);
    const field = screen.getByLabelText<HTMLInputElement>("Token");
    await userEvent.type(field, "berth_x");
    answers["GET /me"] = "never";
    focus();
    await act(() => Promise.resolve());
    expect(field.isConnected).toBe(true);
    expect(field.value).toBe("berth_x");
  });

  it("does not look after a log-out of its own", async () => {
    const { asked } = await drawApp("/probes", { ...found, "DELETE /session": [204, null] });
    await logOut();
    await screen.findByText("Log in to Berth");
    const before = asks(asked, "GET /me");
    focus();
    await act(() => Promise.resolve());
    expect(asks(asked, "GET /me")).toBe(before);
  });

  it("shows the page to whoever never logged in here, too", async () => {
    const answers: Answers = { ...found, "GET /me": [401, { detail: "Log in." }] };
    await drawApp("/probes", answers);
    await screen.findByText("Log in to Berth");
    answers["GET /me"] = [200, ada];
    focus();
    expect(await screen.findByRole("button", { name: "Account of ada" })).toBeTruthy();
  });
});
