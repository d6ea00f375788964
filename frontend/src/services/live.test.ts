import { QueryClient, QueryObserver, type QueryKey } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError, toApiError } from "@/api/errors";
import { Live } from "@/services/live";
import { again, newQueryClient } from "@/services/query";

let opened = 0;
let change: (event: MessageEvent<string>) => void = () => undefined;

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
      addEventListener(kind: string, listener: typeof change) {
        if (kind === "change") change = listener;
      }
      close() {}
    },
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
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

it("reads nothing for a change that came just before the stream of a hidden page closed", async () => {
  const queries = new QueryClient();
  const read = vi.fn(() => 1);
  const list = new QueryObserver(queries, { queryKey: ["sweeps"], queryFn: read, staleTime: Infinity });
  const leave = list.subscribe(() => undefined);
  const end = new Live(queries).start();
  const hear = () => change(new MessageEvent("change", { data: '{"kind":"sweep.succeeded","sweep_id":"a"}' }));
  hear();
  await vi.advanceTimersByTimeAsync(1000);
  expect(read).toHaveBeenCalledTimes(2); // at first, and for the change

  turn(true);
  await vi.advanceTimersByTimeAsync(29_990);
  hear();
  await vi.advanceTimersByTimeAsync(1); // read at once
  hear(); // not before 250 ms have passed
  await vi.advanceTimersByTimeAsync(1000);
  expect(read).toHaveBeenCalledTimes(3);
  end();
  leave();
});

const failed = { state: { status: "error", error: new ApiError(503, {}), data: {} } };

it.each([
  ["live", "yes", 10_000],
  ["paused", "no", false],
])("a tab that is %s reads what failed by its own badge, whatever another tab chose", (state, other, after) => {
  const live = new Live(new QueryClient());
  const end = live.start();
  live.setPaused(state === "paused");
  localStorage.setItem("berth-live-paused", other);
  expect(live.current() === "paused").toBe(state === "paused");
  expect(again(failed)).toBe(after);
  end();
});

it("begins paused when the last tab was", () => {
  localStorage.setItem("berth-live-paused", "yes");
  const live = new Live(new QueryClient());
  const end = live.start();
  expect(live.current()).toBe("paused");
  expect(again(failed)).toBe(false);
  end();
});

it.each([
  [false, "yes"],
  [true, "no"],
])("stays as it was over a log-in, whatever another tab chose (paused: %s)", (paused, other) => {
  const live = new Live(new QueryClient());
  const over = live.start();
  live.setPaused(paused);
  over();
  localStorage.setItem("berth-live-paused", other);
  const end = live.start();
  expect(live.current() === "paused").toBe(paused);
  end();
});

it("reads nothing again that failed before the pause, until it ends", async () => {
  const queries = newQueryClient();
  const live = new Live(queries);
  const end = live.start();
  queries.setQueryData(["x"], "old");
  const queryFn = vi.fn(() => Promise.reject(new ApiError(503, {})));
  const unsubscribe = new QueryObserver(queries, { queryKey: ["x"], queryFn, retry: false, staleTime: 0 }).subscribe(
    vi.fn(),
  );
  await vi.advanceTimersByTimeAsync(5000);
  expect(queryFn).toHaveBeenCalledOnce();
  live.setPaused(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(queryFn).toHaveBeenCalledOnce();
  live.setPaused(false);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(queryFn).toHaveBeenCalledTimes(2);
  unsubscribe();
  end();
});

/** A stream whose server a test plays. */
class Source {
  static opened: Source[] = [];
  readyState = 0;
  readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
  constructor() {
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
