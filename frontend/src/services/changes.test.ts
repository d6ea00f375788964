import { QueryClient, QueryObserver, type QueryKey } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Invalidator } from "@/services/changes";
import { healthQuery } from "@/services/health";
import { newQueryClient } from "@/services/query";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** shown is pages that show queries, and how often each was read since the last look. */
async function shown(...keys: QueryKey[]) {
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  const answers = new Map<string, unknown>();
  const reads = keys.map((queryKey) => {
    const queryFn = vi.fn(() => Promise.resolve(answers.get(JSON.stringify(queryKey)) ?? {}));
    new QueryObserver(queries, { queryKey, queryFn }).subscribe(() => undefined);

    return queryFn;
  });
  await vi.advanceTimersByTimeAsync(10_000);
  const counts = () =>
    reads.map((read) => {
      const times = read.mock.calls.length;
      read.mockClear();

      return times;
    });
  counts();

  return { queries, invalidator: new Invalidator(queries), answers, counts };
}

describe("what takes the server much", () => {
  const leases = (n: number) => Array.from({ length: n }, () => ({}));

  /** aMinute is how often each was read while events of a sweep came ten times a second. */
  async function aMinute({ invalidator, counts }: Awaited<ReturnType<typeof shown>>) {
    for (let ms = 0; ms < 60_000; ms += 100) {
      invalidator.change({ kind: "trial.state", sweep_id: "0190aaaa-1", subject: "t", trial: 3 });
      await vi.advanceTimersByTimeAsync(100);
    }
    invalidator.stop();

    return counts();
  }

  it("is the health: events have it read every 15 s", async () => {
    const page = await shown(["health"], ["queue"]);
    const [health, queue] = await aMinute(page);
    expect(health).toBeGreaterThanOrEqual(3);
    expect(health).toBeLessThanOrEqual(5);
    expect(queue).toBeGreaterThan(100);
  });

  it("is the health also while it cannot be read", async () => {
    const sent = vi.fn(() => Promise.resolve(new Response("a proxy's page", { status: 502 })));
    vi.stubGlobal("fetch", sent);
    const queries = newQueryClient();
    const end = new QueryObserver(queries, healthQuery(true)).subscribe(() => undefined);
    await aMinute({ queries, invalidator: new Invalidator(queries), answers: new Map(), counts: () => [] });
    expect(sent.mock.calls.length).toBeLessThanOrEqual(8); // one in 10 s until it answers
    end();
  });

  it("is more than one page of leases: of these one is asked for a second", async () => {
    const page = await shown(["leases"]);
    page.answers.set(JSON.stringify(["leases"]), leases(3600)); // 8 pages
    const [many] = await aMinute(page);
    expect(many).toBeGreaterThanOrEqual(6);
    expect(many).toBeLessThanOrEqual(9);
    page.answers.set(JSON.stringify(["leases"]), leases(500));
    page.invalidator.reset();
    await vi.advanceTimersByTimeAsync(9000);
    page.counts();
    expect((await aMinute(page))[0]).toBeGreaterThan(100);
  });
});
