import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Live } from "@/services/live";

let opened = 0;

beforeEach(() => {
  opened = 0;
  vi.useFakeTimers();
  vi.stubGlobal(
    "EventSource",
    class {
      readyState = 0;
      constructor() {
        opened++;
      }
      addEventListener() {}
      close() {}
    },
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function turn(hidden: boolean) {
  vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

it("opens no stream of a hidden page when the browser is online again, until it is shown", () => {
  const end = new Live(new QueryClient()).start();
  window.dispatchEvent(new Event("online"));
  expect(opened).toBe(2);
  turn(true);
  vi.advanceTimersByTime(31_000);
  window.dispatchEvent(new Event("online"));
  expect(opened).toBe(2);
  turn(false);
  expect(opened).toBe(3);
  end();
});
