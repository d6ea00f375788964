import { QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import { queueQuery } from "@/services/hosts";
import { newQueryClient } from "@/services/query";
import { queued } from "@/test/factories/host";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it.each([
  ["soon while a start is known in a few seconds", true, 4],
  ["once a minute when all are known", false, 1],
] as const)("reads the queue again %s", async (_, asked, calls) => {
  configure("http://localhost/api/v1");
  const row = queued(asked ? { expected_start: { unknown: "just_asked" } } : {});
  const sent = vi.fn(() => Promise.resolve(Response.json({ data: [row], total: 1 })));
  vi.stubGlobal("fetch", sent);
  const end = new QueryObserver(newQueryClient(), queueQuery(true)).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(sent).toHaveBeenCalledTimes(calls);
  end();
});
