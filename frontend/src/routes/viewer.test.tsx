import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp, local, type Answers } from "@/test/app";
import { cordonedDevice, host } from "@/test/factories/host";
import { preview, sweep } from "@/test/factories/sweep";

afterEach(() => vi.unstubAllGlobals());

const some: Answers = {
  "GET /sweeps": [200, { data: [sweep()] }],
  "GET /hosts": [200, { data: [host({ devices: [cordonedDevice()] })] }],
  "POST /sweep-validations": [200, { valid: true, problems: [], warnings: [] }],
  "POST /sweep-previews": [200, preview()],
};
const empty: Answers = { ...some, "GET /sweeps": [200, { data: [] }] };

it.each([
  ["/sweeps", some, "link", "New sweep", "start a sweep"],
  ["/sweeps", empty, "button", "Start the example", "start a sweep"],
  ["/machines", some, "button", /Drain|Cordon|Uncordon/, "change machines"],
  ["/settings", some, "button", "Make a token", undefined],
] as const)("a viewer of %s is not offered what would be refused", async (path, answers, role, name, action) => {
  await drawApp(path, { ...answers, "GET /me": [200, { ...local, role: "viewer" }] });
  await screen.findByRole("heading", { level: 1 });
  if (action !== undefined) expect(await screen.findByText(new RegExp(`Ask an operator to ${action}`))).toBeTruthy();
  expect(screen.queryByRole(role, { name })).toBeNull();
});

it("a viewer may write and check a file, not launch it", async () => {
  await drawApp("/sweeps/new?from=example", { ...some, "GET /me": [200, { ...local, role: "viewer" }] });
  expect(await screen.findByText(/Ask an operator to launch it/)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Launch" }).hasAttribute("disabled")).toBe(true);
});
