import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { whileHidden } from "@/lib/hidden";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function turn(hidden: boolean) {
  vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

it("sleeps in a tab that was opened behind", () => {
  const sleep = vi.fn();
  turn(true);
  const end = whileHidden(sleep, vi.fn());
  vi.advanceTimersByTime(31_000);
  expect(sleep).toHaveBeenCalledOnce();
  end();
});

it("sleeps after 30 s out of sight and wakes in sight", () => {
  const sleep = vi.fn();
  const wake = vi.fn();
  const end = whileHidden(sleep, wake);
  turn(true);
  vi.advanceTimersByTime(29_000);
  turn(false);
  expect(sleep).not.toHaveBeenCalled();
  expect(wake).not.toHaveBeenCalled();
  turn(true);
  vi.advanceTimersByTime(31_000);
  expect(sleep).toHaveBeenCalledOnce();
  turn(false);
  expect(wake).toHaveBeenCalledOnce();
  end();
});
