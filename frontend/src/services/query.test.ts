import { focusManager, InfiniteQueryObserver, onlineManager, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answer, configure } from "@/api/client";
import { ApiError, toApiError } from "@/api/errors";
import { getMe } from "@/api/generated";
import { holdPages } from "@/lib/paused";
import { healthQuery } from "@/services/health";
import { hostsQuery, leasesQuery, queueQuery } from "@/services/hosts";
import { probeQuery, probesQuery } from "@/services/probes";
import { again, newQueryClient, retryDelay } from "@/services/query";
import { secretsQuery } from "@/services/secrets";
import { tokensQuery } from "@/services/tokens";
import { filesQuery, memoryQuery, metricsQuery, trialQuery, trialsQuery } from "@/services/trials";
import { host, queued } from "@/test/factories/host";
import { trial, waitingTrial } from "@/test/factories/trial";

beforeEach(() => {
  vi.useFakeTimers();
  configure("http://localhost/api/v1");
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  onlineManager.setOnline(true);
  holdPages(false);
});

function ask(error: unknown) {
  const queryFn = vi.fn().mockRejectedValueOnce(error).mockResolvedValue("read");
  const result = newQueryClient().query({ queryKey: ["x"], queryFn });
  result.catch(() => undefined);

  return { queryFn, result };
}

describe("newQueryClient", () => {
  it("reads while the browser says that it is offline", async () => {
    onlineManager.setOnline(false);
    const { result } = ask(toApiError(0, undefined));
    await vi.advanceTimersByTimeAsync(2000);
    expect(await result).toBe("read");
  });

  it("sends a change at once or never", () =>
    expect(newQueryClient().getDefaultOptions().mutations).toEqual({ networkMode: "always", retry: false }));

  it("waits as long as the server asks", async () => {
    const { queryFn, result } = ask(toApiError(429, { detail: "Too many." }, new Headers({ "Retry-After": "7" })));
    await vi.advanceTimersByTimeAsync(6900);
    expect(queryFn).toHaveBeenCalledOnce();
    await vi.advanceTimersByTimeAsync(200);
    expect(await result).toBe("read");
  });

  it.each([400, 404, 409])("does not repeat what the server refused with %d", async (status) => {
    const { queryFn } = ask(new ApiError(status, {}));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(queryFn).toHaveBeenCalledOnce();
  });

  it("waits longer each time without a word from the server", () =>
    expect([0, 1, 2, 9].map((n) => retryDelay(n, new ApiError(503, {})))).toEqual([1000, 2000, 4000, 30_000]));
});

function shown(options: object) {
  const observer = new QueryObserver(newQueryClient(), options as ConstructorParameters<typeof QueryObserver>[1]);

  return { observer, end: observer.subscribe(() => undefined) };
}

describe("what could not be read", () => {
  it.each([
    ["a page", {}],
    ["machines, while paused", hostsQuery(false)],
    ["a trial", trialQuery("s", 1)],
    ["a list of trials", trialsQuery("s", {})],
    ["files", filesQuery("s", 1, "t", 1, true)],
  ])("is read again until it is there: %s", async (_, options) => {
    let away = true;
    const queryFn = vi.fn(() => (away ? Promise.reject(new ApiError(503, {})) : Promise.resolve({})));
    const { observer, end } = shown({ queryKey: ["x"], ...options, queryFn });
    await vi.advanceTimersByTimeAsync(25_000);
    expect(observer.getCurrentResult().data).toBeUndefined();
    away = false;
    await vi.advanceTimersByTimeAsync(14_000);
    expect(observer.getCurrentResult().status).toBe("success");
    const { length } = queryFn.mock.calls;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(queryFn.mock.calls.length).toBe(length);
    end();
  });

  it.each([401, 403, 404])("is left when the server says %d", async (status) => {
    const queryFn = vi.fn(() => Promise.reject(new ApiError(status, {})));
    const { end } = shown({ queryKey: ["x"], queryFn });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(queryFn).toHaveBeenCalledOnce();
    end();
  });

  it("is read again when the server says so, and a list of many pages slowly", () => {
    const after = (error: unknown, data?: unknown) => again({ state: { status: "error", error, data } });
    expect(after(new ApiError(429, {}))).toBe(10_000);
    expect(after(new ApiError(429, {}, 120))).toBe(120_000);
    expect(after(toApiError(0, undefined), { pages: Array.from({ length: 21 }) })).toBe(21_000);
    expect(again({ state: { status: "pending", error: null, data: undefined } })).toBe(false);
  });

  it("stays as it is while paused, where something is shown", () => {
    const after = (data: unknown) => again({ state: { status: "error", error: new ApiError(503, {}), data } });
    holdPages(true);
    expect(after({})).toBe(false);
    expect(after(undefined)).toBe(10_000);
  });
});

describe("what shows something that runs", () => {
  const list = (...data: unknown[]) => ({ data, total: data.length });
  const pages = (n: number, row: unknown) => ({ pages: Array.from({ length: n }, () => list(row)), pageParams: [] });
  const [busy, idle] = [host({ attempts: 1 }), host({ attempts: 0 })];
  const queries: [what: string, query: (live: boolean) => object, answer: unknown, times: number][] = [
    ["machines with attempts", hostsQuery, list(idle, busy), 16],
    ["idle machines, of which one may fall silent", hostsQuery, list(idle), 2],
    ["leases", leasesQuery, [{}], 16],
    ["no leases", leasesQuery, [], 1],
    ["8 pages of leases", leasesQuery, Array.from({ length: 3600 }), 8],
    ["a queue", queueQuery, list(queued()), 16],
    ["an empty queue", queueQuery, list(), 1],
    ["a trial that waits", (live) => trialQuery("s", 1, live), waitingTrial(), 16],
    ["a trial that has ended", (live) => trialQuery("s", 1, live), trial(), 1],
    ["metrics of an attempt that reports", (live) => metricsQuery("s", 1, "a", live), list(), 16],
    ["memory of an attempt that reports", (live) => memoryQuery("s", 1, "a", live), {}, 16],
    ["files that are being stored", (live) => filesQuery("s", 1, "t", 1, live), { state: "pending" }, 16],
    ["files that are stored", (live) => filesQuery("s", 1, "t", 1, live), { state: "stored" }, 1],
    ["health", healthQuery, {}, 2],
  ];

  async function reads(query: object, answer: unknown): Promise<number> {
    const queryFn = vi.fn(() => Promise.resolve(answer));
    const { end } = shown({ ...query, queryFn });
    await vi.advanceTimersByTimeAsync(62_000);
    end();

    return queryFn.mock.calls.length;
  }

  it.each(queries)("is read again every few seconds: %s", async (_, query, answer, times) => {
    expect(await reads(query(true), answer)).toBe(times);
  });

  it.each(queries)("is not read again while paused: %s", async (_, query, answer) => {
    expect(await reads(query(false), answer)).toBe(1);
  });

  it("is not read again while the page is hidden", async () => {
    focusManager.setFocused(false);
    expect(await reads(queueQuery(true), list(queued()))).toBe(1);
    focusManager.setFocused(undefined);
  });

  it.each([
    ["waits", waitingTrial(), 2, true],
    ["waits, of many pages, which are left to events", waitingTrial(), 3, false],
    ["has ended", trial(), 2, false],
  ] as const)("may be a list of trials of which one %s", async (_, row, n, again) => {
    const client = newQueryClient();
    const queryFn = vi.fn(() => Promise.resolve(list(row)));
    const options = { ...trialsQuery("s", {}), queryFn };
    client.setQueryData(options.queryKey, pages(n, row) as never);
    const end = new InfiniteQueryObserver(client, options as never).subscribe(() => undefined);
    await vi.advanceTimersByTimeAsync(62_000);
    expect(queryFn.mock.calls.length > 0).toBe(again);
    end();
  });
});

describe("what no event names", () => {
  it.each([
    ["tokens", tokensQuery(true)],
    ["secrets", secretsQuery],
    ["probes", probesQuery],
    ["a probe", probeQuery("k")],
  ])("is read again when its page is opened again: %s", async (_, options) => {
    const queries = newQueryClient();
    const queryFn = vi.fn(() => Promise.resolve({}));
    for (let opened = 1; opened <= 2; opened++) {
      const end = new QueryObserver(queries, { ...(options as object), queryKey: ["x"], queryFn }).subscribe(vi.fn());
      await vi.advanceTimersByTimeAsync(1000);
      expect(queryFn).toHaveBeenCalledTimes(opened);
      end();
    }
  });

  it.each([
    ["each minute", true, 3],
    ["not while paused", false, 1],
  ])("is read again: tokens, %s", async (_, live, times) => {
    const queryFn = vi.fn(() => Promise.resolve({ data: [] }));
    const { end } = shown({ ...tokensQuery(live), queryFn });
    await vi.advanceTimersByTimeAsync(125_000);
    expect(queryFn).toHaveBeenCalledTimes(times);
    end();
  });
});

describe("a call", () => {
  it("carries a signal of its own, which ends it after 30 s", async () => {
    const timeout = vi.spyOn(AbortSignal, "timeout");
    const signals: unknown[] = [];
    vi.stubGlobal("fetch", (_: Request, init: RequestInit) => {
      signals.push(init.signal);

      return Promise.resolve(Response.json({}));
    });
    await answer(getMe());
    expect(timeout).toHaveBeenCalledWith(30_000);
    expect(signals[0]).toBeInstanceOf(AbortSignal);
  });
});
