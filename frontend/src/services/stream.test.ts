import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Invalidator, touched } from "@/services/changes";
import { ChangeStream, type Source, type StreamState } from "@/services/stream";

class FakeSource implements Source {
  readyState = 0;
  closed = false;
  private readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();

  addEventListener(kind: string, listener: (event: MessageEvent<string>) => void) {
    this.listeners.set(kind, listener);
  }
  close() {
    this.closed = true;
  }
  send(kind: string, data: unknown = {}) {
    this.listeners.get(kind)?.(new MessageEvent(kind, { data: JSON.stringify(data) }));
  }
  refuse() {
    this.readyState = 2;
    this.send("error");
  }
}

function setup() {
  const sources: FakeSource[] = [];
  const states: StreamState[] = [];
  const calls = { change: vi.fn(), reset: vi.fn(), refused: vi.fn() };
  const stream = new ChangeStream({
    open: () => {
      const source = new FakeSource();
      sources.push(source);
      return source;
    },
    onChange: calls.change,
    onReset: calls.reset,
    onRefused: calls.refused,
    onState: (state) => states.push(state),
  });
  const at = (i: number) => {
    const source = sources[i];
    if (!source) throw new Error(`no stream ${i}`);
    return source;
  };
  return { stream, sources, states, calls, at };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("ChangeStream", () => {
  it("passes changes on, and reads anew what changed before it opened", () => {
    const { stream, at, calls, states } = setup();
    stream.start();
    at(0).send("open");
    at(0).send("change", { kind: "trial.state", sweep_id: "s", subject: "t" });
    expect(calls.change).toHaveBeenCalledWith({ kind: "trial.state", sweep_id: "s", subject: "t" });
    expect(calls.reset).toHaveBeenCalledOnce();
    expect(states).toEqual(["connecting", "live"]);
  });

  it("reopens a refused stream later and later, then reads everything anew", () => {
    const { stream, sources, at, calls } = setup();
    stream.start();
    at(0).refuse();
    expect(calls.refused).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(1300);
    expect(sources).toHaveLength(2);
    at(1).refuse();
    vi.advanceTimersByTime(1300);
    expect(sources).toHaveLength(2);
    vi.advanceTimersByTime(1300);
    at(2).send("open");
    expect(calls.reset).toHaveBeenCalledOnce();
  });

  it("leaves a cut stream to the browser, which sends Last-Event-ID", () => {
    const { stream, sources, at, states, calls } = setup();
    stream.start();
    at(0).send("open");
    at(0).send("error");
    vi.advanceTimersByTime(39_000);
    expect(sources).toHaveLength(1);
    expect(states.at(-1)).toBe("reconnecting");
    at(0).send("open");
    expect(calls.reset).toHaveBeenCalledOnce();
  });

  it("reopens after sleep and reads everything anew", () => {
    const { stream, at, calls } = setup();
    stream.start();
    at(0).send("open");
    stream.wake();
    expect(at(0).closed).toBe(true);
    at(1).send("open");
    expect(calls.reset).toHaveBeenCalledTimes(2);
  });

  it("closes for a hidden page until it is shown", () => {
    const { stream, sources, at } = setup();
    stream.start();
    stream.sleep();
    vi.advanceTimersByTime(60_000);
    expect(at(0).closed).toBe(true);
    expect(sources).toHaveLength(1);
    stream.wake();
    expect(sources).toHaveLength(2);
  });

  it("takes a stream for dead that falls silent, also before its first `alive`", () => {
    const { stream, sources, at } = setup();
    stream.start();
    at(0).send("open");
    vi.advanceTimersByTime(39_000);
    expect(sources).toHaveLength(1);
    vi.advanceTimersByTime(2000);
    expect(sources).toHaveLength(2);
    at(1).send("open");
    at(1).send("alive");
    vi.advanceTimersByTime(39_000);
    at(1).send("change", { kind: "trial.state", subject: "t" });
    vi.advanceTimersByTime(39_000);
    expect(sources).toHaveLength(2);
    vi.advanceTimersByTime(2000);
    expect(sources).toHaveLength(3);
  });

  it("takes a stream for dead that hangs before it opens", () => {
    const { stream, sources, at, states } = setup();
    stream.start();
    vi.advanceTimersByTime(39_000);
    expect(sources).toHaveLength(1);
    vi.advanceTimersByTime(2000);
    expect(sources).toHaveLength(2);
    expect(at(0).closed).toBe(true);
    expect(states.at(-1)).toBe("reconnecting");
    at(1).send("open");
    expect(states.at(-1)).toBe("live");
  });

  it("waits its turn after an answer that took long and was a refusal", () => {
    const { stream, sources, at } = setup();
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    stream.start();
    for (let tries = 1; tries <= 5; tries++) {
      at(tries - 1).refuse();
      vi.advanceTimersByTime(1000 * 2 ** (tries - 1));
      expect(sources).toHaveLength(tries + 1);
    }
    vi.advanceTimersByTime(20_000);
    at(5).refuse();
    vi.advanceTimersByTime(29_000);
    expect(sources).toHaveLength(6);
    vi.advanceTimersByTime(1000);
    expect(sources).toHaveLength(7);
  });

  it("stays closed while paused", () => {
    const { stream, sources, states } = setup();
    stream.start();
    stream.pause();
    stream.wake();
    vi.advanceTimersByTime(60_000);
    expect(sources).toHaveLength(1);
    expect(states.at(-1)).toBe("paused");
  });

  it("hears reset", () => {
    const { stream, at, calls } = setup();
    stream.start();
    at(0).send("reset", {});
    expect(calls.reset).toHaveBeenCalledOnce();
  });
});

describe("Invalidator", () => {
  it("reads again what was being read when the change came", async () => {
    const queries = new QueryClient();
    const answers: ((state: string) => void)[] = [];
    const read = vi.fn(() => new Promise<string>((resolve) => answers.push(resolve)));
    const observer = new QueryObserver(queries, { queryKey: ["sweep", "a"], queryFn: read, staleTime: Infinity });
    const end = observer.subscribe(() => undefined);
    new Invalidator(queries).change({ kind: "sweep.state", sweep_id: "a", subject: "a" });
    await vi.advanceTimersByTimeAsync(1000);
    expect(read).toHaveBeenCalledOnce();
    answers[0]?.("running");
    await vi.advanceTimersByTimeAsync(1000);
    expect(read).toHaveBeenCalledTimes(2);
    answers[1]?.("succeeded");
    await vi.advanceTimersByTimeAsync(1000);
    expect(observer.getCurrentResult().data).toBe("succeeded");
    expect(read).toHaveBeenCalledTimes(2);
    end();
  });

  it("marks stale at most four times a second", () => {
    const queries = new QueryClient();
    queries.setQueryData(["sweep", "a"], {});
    const spy = vi.spyOn(queries, "invalidateQueries");
    const invalidator = new Invalidator(queries);
    for (let ms = 0; ms < 1240; ms += 10) {
      invalidator.change({ kind: "trial.state", sweep_id: "a", subject: "t" });
      vi.advanceTimersByTime(10);
    }
    expect(spy.mock.calls.length).toBeLessThanOrEqual(5);
    expect(spy.mock.calls.length).toBeGreaterThanOrEqual(3);
  });

  it("knows a sweep by the beginning of its id", () => {
    const changed = new Map([["0190aaaa-1", new Set([2])]]);
    expect(touched(["sweep", "0190aaaa"], changed)).toBe(true);
    expect(touched(["sweep", "0190bbbb", "trials"], changed)).toBe(false);
    expect(touched(["sweeps", {}], changed)).toBe(true);
    expect(touched(["me"], changed)).toBe(false);
    expect(touched(["sweeps", {}], new Map())).toBe(false);
  });

  it("reads metrics again for their own trial alone", () => {
    const changed = new Map([["0190aaaa-1", new Set([2])]]);
    expect(touched(["sweep", "0190aaaa-1", "metrics", 2, "a"], changed)).toBe(true);
    expect(touched(["sweep", "0190aaaa-1", "metrics", 3, "b"], changed)).toBe(false);
    expect(touched(["sweep", "0190aaaa-1", "metrics", 3, "b"], new Map([["0190aaaa-1", new Set([undefined])]]))).toBe(
      true,
    );
  });

  it("reads the files of a trial again for it alone", () => {
    const changed = new Map([["0190aaaa-1", new Set([2])]]);
    expect(touched(["sweep", "0190aaaa-1", "files", 2, 1], changed)).toBe(true);
    expect(touched(["sweep", "0190aaaa-1", "files", 3, 1], changed)).toBe(false);
  });

  it("reads a trial again for itself alone, and the file for its sweep alone", () => {
    const ofTrial = new Map([["0190aaaa-1", new Set([2])]]);
    const ofSweep = new Map([["0190aaaa-1", new Set([undefined])]]);
    expect(touched(["sweep", "0190aaaa-1", "trial", 2, "attempts"], ofTrial)).toBe(true);
    expect(touched(["sweep", "0190aaaa-1", "trial", 3], ofTrial)).toBe(false);
    expect(touched(["sweep", "0190aaaa-1", "text"], ofTrial)).toBe(false);
    expect(touched(["sweep", "0190aaaa-1", "trials", {}], ofTrial)).toBe(true);
    expect(touched(["sweep", "0190aaaa-1", "trial", 3], ofSweep)).toBe(true);
    expect(touched(["sweep", "0190aaaa-1", "text"], ofSweep)).toBe(true);
  });

  it("reads what changed after the clock was set back by an hour", async () => {
    vi.setSystemTime(new Date("2026-01-01T12:00:00Z"));
    const queries = new QueryClient();
    queries.setQueryData(["sweep", "a"], {});
    const invalidator = new Invalidator(queries);
    invalidator.change({ kind: "sweep.state", sweep_id: "a", subject: "a" });
    await vi.advanceTimersByTimeAsync(300);
    queries.setQueryData(["sweep", "a"], {}); // which was read again
    queries.setQueryData(["sweep", "a", "report"], {});
    vi.setSystemTime(new Date("2026-01-01T11:00:00Z"));
    invalidator.change({ kind: "sweep.state", sweep_id: "a", subject: "a" });
    await vi.advanceTimersByTimeAsync(300);
    expect(queries.getQueryState(["sweep", "a"])?.isInvalidated).toBe(true);
    expect(queries.getQueryState(["sweep", "a", "report"])?.isInvalidated).toBe(true);
    invalidator.stop();
  });

  it("reads a report again at most every 5 s", () => {
    const queries = new QueryClient();
    queries.setQueryData(["sweep", "a", "report"], {});
    const spy = vi.spyOn(queries, "invalidateQueries");
    const invalidator = new Invalidator(queries);
    for (let ms = 0; ms < 4000; ms += 200) {
      invalidator.change({ kind: "trial.state", sweep_id: "a", subject: "t" });
      vi.advanceTimersByTime(200);
    }
    expect(spy).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1500); // changes in this time are not forgotten
    expect(queries.getQueryState(["sweep", "a", "report"])?.isInvalidated).toBe(true);
    invalidator.stop();
  });

  it("reads machines alone again when a host changed", () => {
    const queries = new QueryClient();
    queries.setQueryData(["hosts"], 1);
    queries.setQueryData(["sweeps", {}], 1);
    const invalidator = new Invalidator(queries);
    invalidator.change({ kind: "host.state", subject: "h" });
    vi.advanceTimersByTime(300);
    expect(queries.getQueryState(["hosts"])?.isInvalidated).toBe(true);
    expect(queries.getQueryState(["sweeps", {}])?.isInvalidated).toBe(false);
  });
});
