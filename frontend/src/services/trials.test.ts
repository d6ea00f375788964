import { InfiniteQueryObserver, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import { Invalidator } from "@/services/changes";
import { newQueryClient } from "@/services/query";
import { trialQuery, trialsQuery } from "@/services/trials";
import { trial, waitingTrial } from "@/test/factories/trial";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it.each([
  ["waits, once a minute", waitingTrial(), true, 3],
  ["has ended", trial(), true, 1],
  ["waits, while paused", waitingTrial(), false, 1],
] as const)("reads again a trial that %s", async (_, one, live, calls) => {
  configure("http://localhost/api/v1");
  const sent = vi.fn(() => Promise.resolve(Response.json(one)));
  vi.stubGlobal("fetch", sent);
  const end = new QueryObserver(newQueryClient(), trialQuery("s", 1, live)).subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(125_000);
  expect(sent).toHaveBeenCalledTimes(calls);
  end();
});

it("reads a list of many pages again so slowly that it asks for one page a second", async () => {
  let reads = 0;
  configure("http://localhost/api/v1");
  vi.stubGlobal("fetch", (request: Request) => {
    reads++;
    const at = Number(new URL(request.url).searchParams.get("cursor") ?? 0);

    return Promise.resolve(
      Response.json({ data: [trial({ number: at + 1 })], total: 50_000, next_cursor: String(at + 1) }),
    );
  });
  const queries = newQueryClient();
  const list = new InfiniteQueryObserver(queries, trialsQuery("s", {}, false));
  const end = list.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < 20; i++) await list.fetchNextPage(); // a person has scrolled down
  const before = reads;
  const invalidator = new Invalidator(queries);
  const change = () => invalidator.change({ kind: "trial.state", sweep_id: "s", subject: "t", trial: 3 });
  for (let ms = 0; ms < 60_000; ms += 500) {
    change();
    await vi.advanceTimersByTimeAsync(500);
  }
  end();
  invalidator.stop();
  expect(reads - before).toBeGreaterThanOrEqual(40);
  expect(reads - before).toBeLessThanOrEqual(65);
});
