import { QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import { newQueryClient } from "@/services/query";
import { trialQuery } from "@/services/trials";
import { trial, waitingTrial } from "@/test/factories/trial";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it.each([
  ["waits", waitingTrial(), true, 3],
  ["has ended", trial(), true, 1],
  ["waits, while paused", waitingTrial(), false, 1],
] as const)("reads again a trial that %s", async (_, one, live, calls) => {
  configure("http://localhost/api/v1");
  const sent = vi.fn(() => Promise.resolve(Response.json(one)));
  vi.stubGlobal("fetch", sent);
  const end = new QueryObserver(newQueryClient(), trialQuery("s", 1, live)).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(sent).toHaveBeenCalledTimes(calls);
  end();
});
