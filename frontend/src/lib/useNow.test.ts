import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { zoned } from "@/lib/format";
import { holdClock, useNow } from "@/lib/useNow";

const pass = () =>
  act(() => {
    vi.advanceTimersByTime(2000);
  });

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  holdClock(false);
  vi.useRealTimers();
});

it("stands still while live updates are paused", () => {
  const { result } = renderHook(() => useNow());
  const first = result.current;
  pass();
  expect(result.current).toBe(first + 2000);
  holdClock(true);
  pass();
  expect(result.current).toBe(first + 2000);
});

it("names the zone of a moment", () => expect(zoned("2026-01-01T12:00:00Z")).toMatch(/2026.* (UTC|GMT|[A-Z])/));
