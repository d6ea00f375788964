import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
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
