import { InfiniteQueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import { Invalidator } from "@/services/changes";
import { newQueryClient } from "@/services/query";
import { trialsQuery } from "@/services/trials";
import { trial } from "@/test/factories/trial";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
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

it("reads trials again while they run, whose reports no event tells", async () => {
  let reads = 0;
  let state = "running";
  configure("http://localhost/api/v1");
  vi.stubGlobal("fetch", () => {
    reads++;

    return Promise.resolve(Response.json({ data: [trial({ state: state as "running" })], total: 1 }));
  });
  const list = new InfiniteQueryObserver(newQueryClient(), trialsQuery("s", {}));
  const end = list.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(9000);
  expect(reads).toBe(3);
  state = "succeeded";
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reads).toBe(4);
  end();
});
