import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it, vi } from "vitest";
import { Copy } from "@/components/Copy";
import { draw } from "@/test/draw";

afterEach(() => vi.unstubAllGlobals());

it.each([
  [true, "Copied"],
  [false, "Select it and copy it yourself"],
])("copies without a clipboard for scripts, or says so (%s)", async (works, text) => {
  const user = userEvent.setup({ writeToClipboard: false });
  Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true });
  Object.defineProperty(document, "execCommand", { value: () => works, configurable: true });
  await draw(<Copy text="secret" />);
  await user.click(screen.getByRole("button"));
  expect(await screen.findByRole("button", { name: text })).toBeTruthy();
});
