import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, type Answers } from "@/test/app";

afterEach(() => vi.unstubAllGlobals());

const me = { name: "ada", role: "admin", known_by: "session" };
const made = { id: "t", name: "ada", role: "admin", prefix: "berth_ab", secret: "berth_abc", valid: true };

async function makeFirst(change: Answers) {
  const answers: Answers = { "GET /tokens": [200, { data: [] }], "POST /tokens": [201, made], ...change };
  const app = await drawApp("/settings", answers);
  await userEvent.type(await screen.findByLabelText(/^Name/), "ada");
  await userEvent.click(screen.getByRole("button", { name: "Make a token" }));

  return { ...app, answers };
}

it("logs in with the first token before it shows the secret", async () => {
  const { asked } = await makeFirst({ "POST /session": [200, me] });
  expect((await screen.findByTestId("secret")).textContent).toBe("berth_abc");
  const login = asked.find((one) => one.call === "POST /session");
  expect(JSON.parse(login?.body ?? "{}")).toEqual({ token: "berth_abc" });
  await userEvent.keyboard("{Escape}");
  expect(screen.getByTestId("secret")).toBeTruthy();
});

it("shows the secret until it is closed, also when the log-in failed", async () => {
  const { answers, queries } = await makeFirst({ "POST /session": [503, { detail: "Down." }] });
  await screen.findByTestId("secret");
  answers["GET /tokens"] = [401, { detail: "Who?" }];
  await queries.invalidateQueries({ queryKey: ["tokens"] });
  expect(screen.getByTestId("secret").textContent).toBe("berth_abc");
  await userEvent.click(screen.getByRole("button", { name: "Close" }));
  expect(await screen.findByText("Log in to Berth")).toBeTruthy();
});
