import { QueryClient, QueryObserver, type QueryKey } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Invalidator } from "@/services/changes";
import { toApiError } from "@/api/errors";
import type { Hint } from "@/services/fresh";
import { healthQuery } from "@/services/health";
import { Live } from "@/services/live";
import { newQueryClient } from "@/services/query";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  localStorage.clear();
});

const hint = (change: Partial<Hint>): Hint => ({
  kind: "metrics",
  subject: "a1",
  sweep_id: "0190aaaa-1",
  trial: 1,
  at: "2026-01-01T00:00:00Z",
  ...change,
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

const trialOf = (sweep: string, number: number) => ["sweep", sweep, "trial", number];
const metricsOf = (number: number, attempt: string) => ["sweep", "0190aaaa-1", "metrics", number, attempt];
const memoryOf = (number: number, attempt: string) => ["sweep", "0190aaaa-1", "memory", number, attempt];
const listOf = (sweep: string) => ["sweep", sweep, "trials", {}];
const pages = (n: number) => ({ pages: Array.from({ length: n }, () => ({ data: [] })), pageParams: [] });

describe("hints", () => {
  it("read a page at most once in 2 s, whatever comes of 5,000 running attempts", async () => {
    const keys = [metricsOf(1, "a1"), memoryOf(1, "a1"), listOf("0190aaaa-1"), trialOf("0190aaaa-1", 1), ["queue"]];
    const { invalidator, counts } = await shown(...keys);
    for (let ms = 0; ms < 20_000; ms += 500) {
      for (let i = 1; i <= 5000; i++) {
        for (const kind of ["metrics", "memory", "waiting"] as const)
          invalidator.hint(hint({ kind, subject: `a${i}`, trial: i }));
      }
      await vi.advanceTimersByTimeAsync(500);
    }
    for (const times of counts()) {
      expect(times).toBeLessThanOrEqual(11);
      expect(times).toBeGreaterThanOrEqual(8);
    }
    invalidator.stop();
  });

  it("lose none that comes while its query rests", async () => {
    const { invalidator, counts } = await shown(metricsOf(1, "a1"));
    invalidator.hint(hint({}));
    await vi.advanceTimersByTimeAsync(500);
    expect(counts()).toEqual([1]);
    invalidator.hint(hint({}));
    await vi.advanceTimersByTimeAsync(1000);
    expect(counts()).toEqual([0]);
    await vi.advanceTimersByTimeAsync(2000);
    expect(counts()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(counts()).toEqual([0]);
  });

  it("read again what they name, and nothing else", async () => {
    const keys = [
      metricsOf(1, "a1"),
      metricsOf(1, "a2"),
      memoryOf(1, "a1"),
      trialOf("0190aaaa-1", 1),
      trialOf("0190aaaa-1", 2),
      [...trialOf("0190aaaa-1", 1), "attempts"],
      listOf("0190aaaa"),
      listOf("0190bbbb"),
      ["sweep", "0190aaaa-1"],
      ["sweeps", {}],
      ["queue"],
      ["hosts"],
      ["health"],
    ];
    const { invalidator, counts } = await shown(...keys);
    const after = async (named: Partial<Hint>) => {
      invalidator.hint(hint(named));
      await vi.advanceTimersByTimeAsync(3000);

      return counts();
    };
    expect(await after({})).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(await after({ kind: "memory" })).toEqual([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(await after({ kind: "waiting" })).toEqual([0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0]);
    const ofHost = { subject: "h1", sweep_id: undefined, trial: undefined } as unknown as Partial<Hint>;
    expect(await after({ kind: "host.silent", ...ofHost })).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
    expect(await after({ kind: "host.back", ...ofHost })).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0]); // the health rests
    expect(await after({ kind: "of a newer server" as Hint["kind"], ...ofHost })).toEqual(keys.map(() => 0));
    invalidator.missed();
    await vi.advanceTimersByTimeAsync(3000);
    expect(counts()).toEqual([1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0]);
  });

  it("leave a list of many pages to events", async () => {
    const { queries, invalidator, counts } = await shown(listOf("0190aaaa-1"));
    queries.setQueryData(listOf("0190aaaa-1"), pages(3));
    await vi.advanceTimersByTimeAsync(10_000);
    invalidator.hint(hint({ kind: "waiting" }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(counts()).toEqual([0]);
    queries.setQueryData(listOf("0190aaaa-1"), pages(2));
    invalidator.hint(hint({ kind: "waiting" }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(counts()).toEqual([1]);
  });

  it("read many points more slowly", async () => {
    const { invalidator, answers, counts } = await shown(metricsOf(1, "a1"), metricsOf(2, "a2"));
    answers.set(JSON.stringify(metricsOf(1, "a1")), { data: Array.from({ length: 20_000 }) });
    for (let ms = 0; ms < 30_000; ms += 500) {
      invalidator.hint(hint({}));
      invalidator.hint(hint({ subject: "a2", trial: 2 }));
      await vi.advanceTimersByTimeAsync(500);
    }
    const [many, few] = counts();
    expect(many).toBeGreaterThanOrEqual(5);
    expect(many).toBeLessThanOrEqual(7);
    expect(few).toBeGreaterThanOrEqual(12);
    invalidator.stop();
  });

  it("do not make a change wait", async () => {
    const { invalidator, counts } = await shown(metricsOf(1, "a1"));
    invalidator.hint(hint({}));
    await vi.advanceTimersByTimeAsync(500);
    invalidator.hint(hint({}));
    await vi.advanceTimersByTimeAsync(300);
    expect(counts()).toEqual([1]);
    invalidator.change({ kind: "attempt.finished", sweep_id: "0190aaaa-1", subject: "a1", trial: 1 });
    await vi.advanceTimersByTimeAsync(300);
    expect(counts()).toEqual([1]);
  });
});

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

  it("is the health: events have it read every 15 s, and so does the word of a machine", async () => {
    const page = await shown(["health"], ["queue"]);
    const [health, queue] = await aMinute(page);
    expect(health).toBeGreaterThanOrEqual(3);
    expect(health).toBeLessThanOrEqual(5);
    expect(queue).toBeGreaterThan(100);

    page.invalidator.hint({ kind: "host.silent", subject: "h1", at: "2026-01-01T00:00:00Z" });
    await vi.advanceTimersByTimeAsync(15_500);
    expect(page.counts()[0]).toBe(1);
    page.invalidator.stop();
  });

  it("is the health also while it cannot be read", async () => {
    const sent = vi.fn(() => Promise.resolve(new Response("a proxy's page", { status: 502 })));
    vi.stubGlobal("fetch", sent);
    const queries = newQueryClient();
    const end = new QueryObserver(queries, healthQuery(true)).subscribe(() => undefined);
    await aMinute({ queries, invalidator: new Invalidator(queries), answers: new Map(), counts: () => [] });
    expect(sent.mock.calls.length).toBeLessThanOrEqual(8); // one in 10 s until it is there
    end();
  });

  it("is more than one page of leases: of these one is asked for a second", async () => {
    const page = await shown(["leases"]);
    page.answers.set(JSON.stringify(["leases"]), leases(3600)); // 8 pages
    const [many] = await aMinute(page);
    expect(many).toBeGreaterThanOrEqual(6);
    expect(many).toBeLessThanOrEqual(9);
    page.answers.set(JSON.stringify(["leases"]), leases(500));
    page.invalidator.hint({ kind: "host.back", subject: "h1", at: "2026-01-01T00:00:00Z" });
    await vi.advanceTimersByTimeAsync(9000);
    page.counts();
    expect((await aMinute(page))[0]).toBeGreaterThan(100);
  });
});

describe("Live", () => {
  class Source {
    static opened: Source[] = [];
    readyState = 0;
    readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
    constructor(readonly url: string) {
      Source.opened.push(this);
    }
    addEventListener(kind: string, listener: (event: MessageEvent<string>) => void) {
      this.listeners.set(kind, listener);
    }
    close() {}
    send(kind: string, data: unknown = {}) {
      this.listeners.get(kind)?.(new MessageEvent(kind, { data: JSON.stringify(data) }));
    }
  }

  async function open() {
    Source.opened = [];
    vi.stubGlobal("EventSource", Source);
    vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ name: "local", role: "admin" })));
    const { queries, counts } = await shown(metricsOf(1, "a1"));
    const live = new Live(queries);
    const end = live.start();
    const source = Source.opened[0];
    if (!source) throw new Error("no stream");
    source.send("open");
    await vi.advanceTimersByTimeAsync(10_000);
    counts();

    return { live, end, source, counts };
  }

  it("asks for hints, and reads again what they may have named while the stream was cut", async () => {
    const { end, source, counts } = await open();
    expect(source.url).toMatch(/\/api\/v1\/events\?live=true$/);
    source.send("fresh", hint({}));
    await vi.advanceTimersByTimeAsync(3000);
    expect(counts()).toEqual([1]);
    source.send("error");
    await vi.advanceTimersByTimeAsync(3000);
    expect(counts()).toEqual([0]);
    source.send("open");
    await vi.advanceTimersByTimeAsync(3000);
    expect(counts()).toEqual([1]);
    end();
  });

  it("reads again what could not be read while the server was away, though no event names it", async () => {
    Source.opened = [];
    vi.stubGlobal("EventSource", Source);
    vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ name: "local", role: "admin" })));
    let away = false;
    const read = () => (away ? Promise.reject(toApiError(0, undefined)) : Promise.resolve("read"));
    const queries = newQueryClient();
    const open = (...queryKey: QueryKey) => {
      const observer = new QueryObserver(queries, { queryKey, queryFn: read });
      observer.subscribe(() => undefined);

      return observer;
    };
    const sweep = open("sweep", "a");
    const end = new Live(queries).start();
    const source = Source.opened[0];
    source?.send("open");
    await vi.advanceTimersByTimeAsync(10_000);

    away = true;
    source?.send("change", { kind: "sweep.state", sweep_id: "a", subject: "a" }); // the last word of the server
    source?.send("error"); // the browser opens the same stream again
    const opened = open("sweep", "b");
    await vi.advanceTimersByTimeAsync(10_000);
    expect([sweep, opened].map((one) => one.getCurrentResult().status)).toEqual(["error", "error"]);

    away = false;
    source?.send("open");
    await vi.advanceTimersByTimeAsync(11_000);
    expect([sweep, opened].map((one) => one.getCurrentResult().status)).toEqual(["success", "success"]);
    end();
    queries.clear();
  });

  it("reads nothing while a person paused it, also of hints that came before", async () => {
    const { live, end, source, counts } = await open();
    source.send("fresh", hint({}));
    await vi.advanceTimersByTimeAsync(500);
    expect(counts()).toEqual([1]);
    source.send("fresh", hint({}));
    live.setPaused(true);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(counts()).toEqual([0]);
    end();
  });
});
