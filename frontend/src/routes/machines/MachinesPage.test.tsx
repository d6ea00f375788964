import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, hold, type Answers } from "@/test/app";
import { device, host } from "@/test/factories/host";

afterEach(() => vi.unstubAllGlobals());

const pair = { data: [host({ devices: [device({ id: "GPU-aaaa" }), device({ id: "GPU-bbbb" })] }), host({ id: "h2", name: "crate", state: "draining" })] }; // prettier-ignore
const machines = (): Answers => ({
  "GET /hosts": [200, pair],
  "GET /leases": [200, { data: [] }],
  "GET /queue": [200, { data: [], total: 0 }],
  "PATCH /hosts/h2": [200, host()],
});

it("has a button of its own name for each GPU", async () => {
  await drawApp("/machines", machines());
  const buttons = await screen.findAllByRole("button", { name: /^Cordon/ });
  expect(new Set(buttons.map((one) => one.getAttribute("aria-label") ?? one.textContent)).size).toBe(2);
});

it("asks about the GPU by its id", async () => {
  await drawApp("/machines", machines());
  const buttons = await screen.findAllByRole("button", { name: /^Cordon/ });
  await userEvent.click(buttons[1] as HTMLElement);
  expect((await screen.findByRole("dialog")).textContent).toContain("GPU-bbbb");
});

it("keeps the reason that is typed when an earlier action is answered", async () => {
  const { asked } = await drawApp("/machines", machines());
  const reads = () => asked.filter(({ call }) => call === "GET /hosts").length;
  const go = hold(/PATCH .*h2/);
  await userEvent.click(await screen.findByRole("button", { name: "Make ready crate" }));
  await userEvent.click(screen.getAllByRole("button", { name: /^Cordon/ })[0] as HTMLElement);
  await userEvent.type(await screen.findByLabelText("Reason"), "ECC errors");
  const before = reads();
  go();
  await waitFor(() => expect(reads()).toBeGreaterThan(before)); // the answer was taken in
  expect(screen.queryByLabelText<HTMLInputElement>("Reason")?.value).toBe("ECC errors");
});

it.each([
  ["admin", true],
  ["operator", false],
])("offers the role %s to remove a lost machine: %s", async (role, offered) => {
  const lost = { data: [host({ state: "lost" }), host({ id: "h2", name: "crate" })] };
  await drawApp("/machines", {
    ...machines(),
    "GET /hosts": [200, lost],
    "GET /me": [200, { name: "ada", role, known_by: "session" }],
  });
  await screen.findByRole("button", { name: "Drain crate" });
  await waitFor(() => expect(screen.queryByRole("button", { name: /^Remove/ }) !== null).toBe(offered));
});
