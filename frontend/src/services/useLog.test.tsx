import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import type { LogPage, LogPiece } from "@/services/log";
import { useLog } from "@/services/useLog";

class FakeStream {
  static readonly CLOSED = 2;
  static last: FakeStream | undefined;
  readyState = 1;
  private readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
  constructor(readonly url: string) {
    FakeStream.last = this;
  }
  addEventListener(kind: string, listener: (event: MessageEvent<string>) => void) {
    this.listeners.set(kind, listener);
  }
  close() {
    this.readyState = 2;
  }
  refuse() {
    this.readyState = 2;
    this.send("error");
  }
  send(kind: string, data: unknown = {}) {
    act(() => this.listeners.get(kind)?.(new MessageEvent(kind, { data: JSON.stringify(data) })));
  }
}

function serve(pages: Record<string, LogPage>) {
  vi.stubGlobal("fetch", (request: Request) => {
    const offset = new URL(request.url).searchParams.get("offset") ?? "";

    return Promise.resolve(Response.json(pages[offset]));
  });
}

const piece = (offset: number, text: string): LogPiece => ({
  offset,
  length: text.length,
  stream: "stdout",
  at: "",
  text,
});
const MiB = 1024 * 1024;
const whole: LogPiece = { ...piece(0, "a"), length: MiB };

beforeEach(() => {
  configure("http://localhost/api/v1");
  vi.stubGlobal("EventSource", FakeStream);
});
afterEach(() => vi.unstubAllGlobals());

describe("useLog", () => {
  it("reads a complete log", async () => {
    serve({ 0: { data: [piece(0, "hello")], next_offset: 5, complete: true } });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.state).toBe("complete"));
    expect(result.current).toMatchObject({ shown: 5, more: false });
  });

  it("follows what is still written, from where the page ended", async () => {
    serve({ 0: { data: [piece(0, "hello")], next_offset: 5, complete: false } });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.state).toBe("following"));
    expect(FakeStream.last?.url).toContain("offset=5");
    FakeStream.last?.send("piece", piece(5, " world"));
    expect(result.current.pieces.map((one) => one.text).join("")).toBe("hello world");
    FakeStream.last?.send("end");
    expect(result.current.state).toBe("complete");
  });

  it("stops after a full page and reads on when asked", async () => {
    serve({
      0: { data: [whole], next_offset: MiB, complete: false },
      [MiB]: { data: [piece(MiB, "b")], next_offset: MiB + 1, complete: true },
    });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.more).toBe(true));
    act(() => result.current.readMore());
    await waitFor(() => expect(result.current.state).toBe("complete"));
    expect(result.current.pieces).toHaveLength(2);
  });

  it("reads a page once, however often it is asked for, and drops what is shown already", async () => {
    let calls = 0;
    serve({
      0: { data: [whole], next_offset: MiB, complete: false },
      get [MiB]() {
        calls++;

        return { data: [whole, piece(MiB, "b")], next_offset: MiB + 1, complete: true };
      },
    });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.more).toBe(true));
    act(() => {
      result.current.readMore();
      result.current.readMore();
    });
    await waitFor(() => expect(result.current.state).toBe("complete"));
    expect(calls).toBe(1);
    expect(result.current.pieces.map((one) => one.text)).toEqual(["a", "b"]);
  });

  it("follows behind a page that is nearly full", async () => {
    const most = { ...whole, length: MiB - 100 };
    serve({ 0: { data: [most], next_offset: MiB - 100, complete: false } });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.state).toBe("following"));
    FakeStream.last?.send("piece", most);
    expect(result.current.pieces).toHaveLength(1);
  });

  it("closes its stream while the page is hidden and goes on where it was", async () => {
    serve({ 0: { data: [piece(0, "hello")], next_offset: 5, complete: false } });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.state).toBe("following"));
    const first = FakeStream.last;
    const hidden = vi.spyOn(document, "hidden", "get");
    const turn = (is: boolean) => {
      hidden.mockReturnValue(is);
      act(() => void document.dispatchEvent(new Event("visibilitychange")));
    };
    vi.useFakeTimers();
    turn(true);
    act(() => void vi.advanceTimersByTime(31_000));
    expect(first?.readyState).toBe(2);
    turn(false);
    vi.useRealTimers();
    hidden.mockRestore();
    expect(FakeStream.last).not.toBe(first);
    expect(FakeStream.last?.url).toContain("offset=5");
  });

  describe("when the server does not go on with it", () => {
    beforeEach(() => vi.useFakeTimers());
    afterEach(() => vi.useRealTimers());

    const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

    /** cut follows a log of five bytes until the server restarts behind a proxy, which answers 502 until then. */
    async function cut() {
      const answers: { now: () => Response } = {
        now: () => Response.json({ data: [piece(0, "hello")], next_offset: 5, complete: false }),
      };
      const asked: string[] = [];
      vi.stubGlobal("fetch", (request: Request) => {
        asked.push(new URL(request.url).searchParams.get("offset") ?? "");

        return Promise.resolve(answers.now());
      });
      const { result } = renderHook(() => useLog("a"));
      await pass(10);
      FakeStream.last?.send("open");
      FakeStream.last?.send("piece", piece(5, " wide"));
      answers.now = () => new Response("Bad gateway", { status: 502 });
      FakeStream.last?.refuse();
      asked.length = 0;

      return { result, answers, asked, text: () => result.current.pieces.map((one) => one.text).join("") };
    }

    it("tries again, later and later, and goes on without a gap or a repeated piece", async () => {
      const { result, answers, asked, text } = await cut();
      expect(result.current).toMatchObject({
        state: "retrying",
        problem: "The server did not give the log, or its rest; trying again.",
      });
      await pass(60_000);
      expect(result.current.state).toBe("retrying");
      expect(asked.length).toBeGreaterThanOrEqual(4); // 1, 3, 7, 15, 31 s, a quarter more or less
      expect(asked.length).toBeLessThanOrEqual(6);
      expect(new Set(asked)).toEqual(new Set(["10"]));

      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: false });
      await pass(40_000);
      expect(FakeStream.last?.url).toContain("offset=16");
      FakeStream.last?.send("open");
      FakeStream.last?.send("piece", piece(16, "!"));
      expect(result.current).toMatchObject({ state: "following", problem: "", shown: 17 });
      expect(text()).toBe("hello wide world!");
    });

    it("goes on trying when a person asks meanwhile, and tries from the beginning", async () => {
      const { result, answers, text } = await cut();
      act(() => result.current.readMore());
      await pass(100);
      expect(result.current.state).toBe("retrying");
      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: true });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "complete", problem: "" });
      expect(text()).toBe("hello wide world");

      answers.now = () => new Response("Bad gateway", { status: 502 });
      const opened = renderHook(() => useLog("b")).result;
      await pass(5000);
      expect(opened.current.state).toBe("retrying");
      answers.now = () => Response.json({ data: [piece(0, "hello")], next_offset: 5, complete: true });
      await pass(60_000);
      expect(opened.current).toMatchObject({ state: "complete", pieces: [{ text: "hello" }] });

      answers.now = () => new Response("Bad gateway", { status: 502 });
      const long = renderHook(() => useLog("c")).result;
      await pass(5000);
      answers.now = () => Response.json({ data: [whole], next_offset: MiB, complete: false });
      await pass(60_000);
      expect(long.current).toMatchObject({ state: "idle", more: true, problem: "" });
    });

    it("ends with a log that ended meanwhile", async () => {
      const { result, answers, text } = await cut();
      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: true });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "complete", problem: "" });
      expect(text()).toBe("hello wide world");
    });

    it("comes again when the server asks for that, and not before", async () => {
      const { result, answers, asked, text } = await cut();
      answers.now = () => Response.json({ detail: "Too many." }, { status: 429, headers: { "Retry-After": "100" } });
      await pass(2000);
      expect(asked).toHaveLength(1);
      expect(result.current.state).toBe("retrying");
      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: true });
      await pass(95_000);
      expect(asked).toHaveLength(1);
      await pass(10_000);
      expect(result.current).toMatchObject({ state: "complete", problem: "" });
      expect(text()).toBe("hello wide world");
    });

    it("comes again when the server asks for that at the first page", async () => {
      let status = 429;
      vi.stubGlobal("fetch", () =>
        Promise.resolve(Response.json({ data: [piece(0, "hello")], next_offset: 5, complete: true }, { status })),
      );
      const { result } = renderHook(() => useLog("a"));
      await pass(10);
      expect(result.current.state).toBe("retrying");
      status = 200;
      await pass(2000);
      expect(result.current).toMatchObject({ state: "complete", problem: "", shown: 5 });
    });

    it("says that it tries again while the browser reopens the stream", async () => {
      const { result, answers } = await cut();
      answers.now = () => Response.json({ data: [], next_offset: 10, complete: false });
      await pass(2000);
      FakeStream.last?.send("open");
      expect(result.current.state).toBe("following");
      const first = FakeStream.last;
      for (let tries = 0; tries < 13; tries++) {
        if (first) first.readyState = 0; // a connection that was refused
        first?.send("error");
        expect(result.current).toMatchObject({
          state: "retrying",
          problem: expect.stringContaining("trying again") as string,
        });
        await pass(3000);
      }
      expect(FakeStream.last).toBe(first);
      await pass(3000); // 42 s without a byte: an error is none
      expect(FakeStream.last).not.toBe(first);
      expect(result.current.state).toBe("retrying");
      FakeStream.last?.send("open");
      expect(result.current).toMatchObject({ state: "following", problem: "" });
    });

    it("says that it tries again once a connection fell silent", async () => {
      const { result, answers } = await cut();
      answers.now = () => Response.json({ data: [], next_offset: 10, complete: false });
      await pass(2000);
      FakeStream.last?.send("open");
      await pass(41_000);
      expect(result.current.state).toBe("retrying");
    });

    it("keeps what went wrong, and its button, until the answer is there", async () => {
      const { result, answers } = await cut();
      answers.now = () => Response.json({ detail: "No such attempt." }, { status: 404 });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "failed", problem: "No such attempt." });
      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: true });
      act(() => result.current.readMore());
      expect(result.current).toMatchObject({ state: "reading", problem: "No such attempt." });
      await pass(10);
      expect(result.current).toMatchObject({ state: "complete", problem: "" });
    });

    it.each([401, 403, 404])("gives up when the server says why: %d", async (status) => {
      const { result, answers, asked } = await cut();
      answers.now = () => Response.json({ detail: "That is why." }, { status });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "failed", problem: "That is why." });
      await pass(120_000);
      expect(asked).toHaveLength(1);
    });

    it("reads on without a stream while the server refuses streams alone", async () => {
      const { result, answers, text } = await cut();
      answers.now = () => Response.json({ data: [piece(10, " world")], next_offset: 16, complete: false });
      await pass(2000);
      FakeStream.last?.refuse();
      expect(text()).toBe("hello wide world");
      expect(result.current.state).toBe("retrying");
      expect(result.current.problem).toMatch(/^The server did not give .* too many/);
    });

    it("takes a connection for dead that falls silent, and goes on where it was", async () => {
      const { answers } = await cut();
      answers.now = () => Response.json({ data: [], next_offset: 10, complete: false });
      await pass(2000);
      const first = FakeStream.last;
      first?.send("open");
      await pass(39_000);
      first?.send("alive");
      await pass(39_000);
      first?.send("piece", piece(10, " world"));
      await pass(39_000);
      expect(FakeStream.last).toBe(first);
      await pass(2000);
      expect(FakeStream.last).not.toBe(first);
      expect(first?.readyState).toBe(2);
      expect(FakeStream.last?.url).toContain("offset=16");
      const hangs = FakeStream.last;
      await pass(41_000);
      expect(FakeStream.last).not.toBe(hangs);
      cleanup();
    });

    it("tries nothing more once the page is left, or hidden", async () => {
      const { asked } = await cut();
      const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
      act(() => void document.dispatchEvent(new Event("visibilitychange")));
      await pass(31_000);
      asked.length = 0;
      const before = FakeStream.last;
      await pass(60_000);
      expect(asked).toEqual([]);
      hidden.mockReturnValue(false);
      act(() => void document.dispatchEvent(new Event("visibilitychange")));
      hidden.mockRestore();
      expect(FakeStream.last).not.toBe(before);
      FakeStream.last?.refuse();
      cleanup();
      await pass(60_000);
      expect(asked).toEqual([]);
    });
  });

  describe("while updates are paused", () => {
    beforeEach(() => vi.useFakeTimers());
    afterEach(() => vi.useRealTimers());

    const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
    const shown = (paused: boolean) => renderHook((is: boolean) => useLog("a", is), { initialProps: paused });
    const page = { data: [piece(0, "hello")], next_offset: 5, complete: false };

    it("does not follow, and goes on from where it was", async () => {
      serve({ 0: page });
      const { result, rerender } = shown(false);
      await pass(10);
      FakeStream.last?.send("open");
      FakeStream.last?.send("piece", piece(5, " wide"));
      const first = FakeStream.last;
      rerender(true);
      expect(first?.readyState).toBe(2);
      expect(result.current).toMatchObject({ state: "paused", problem: "", shown: 10 });
      first?.send("piece", piece(10, " lost"));
      await pass(120_000);
      expect(FakeStream.last).toBe(first);
      expect(result.current).toMatchObject({ state: "paused", shown: 10 });

      rerender(false);
      expect(FakeStream.last).not.toBe(first);
      expect(FakeStream.last?.url).toContain("offset=10");
      FakeStream.last?.send("open");
      FakeStream.last?.send("piece", piece(5, " wide"));
      FakeStream.last?.send("piece", piece(10, " world"));
      expect(result.current.state).toBe("following");
      expect(result.current.pieces.map((one) => one.text).join("")).toBe("hello wide world");
    });

    it("reads what was written before, of a page that is opened paused", async () => {
      FakeStream.last = undefined;
      serve({ 0: page });
      const { result, rerender } = shown(true);
      await pass(10);
      expect(result.current).toMatchObject({ state: "paused", shown: 5 });
      expect(FakeStream.last).toBeUndefined();
      rerender(false);
      expect(FakeStream.last).toMatchObject({ url: expect.stringContaining("offset=5") as string });
    });

    it("reads on when asked, and tries that again", async () => {
      const pages: Record<string, LogPage> = { 0: { ...page, data: [whole], next_offset: MiB } };
      serve(pages);
      const { result } = shown(true);
      await pass(10);
      expect(result.current.state).toBe("idle");
      vi.stubGlobal("fetch", () => Promise.resolve(new Response("Bad gateway", { status: 502 })));
      act(() => result.current.readMore());
      await pass(10);
      expect(result.current.state).toBe("retrying");
      serve({ [MiB]: { ...page, data: [piece(MiB, "b")], next_offset: MiB + 1 } });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "paused", problem: "", shown: MiB + 1 });
    });

    it("tries again what could not be read at all", async () => {
      FakeStream.last = undefined;
      vi.stubGlobal("fetch", () => Promise.resolve(new Response("Bad gateway", { status: 502 })));
      const { result, rerender } = shown(false);
      await pass(10);
      rerender(true);
      expect(result.current.state).toBe("retrying");
      serve({ 0: page });
      await pass(2000);
      expect(result.current).toMatchObject({ state: "paused", problem: "", shown: 5 });
      expect(FakeStream.last).toBeUndefined();
    });

    it("stays as it is once the page was hidden and shown again", async () => {
      serve({ 0: page });
      const { result, rerender } = shown(false);
      await pass(10);
      rerender(true);
      const last = FakeStream.last;
      const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
      act(() => void document.dispatchEvent(new Event("visibilitychange")));
      await pass(31_000);
      hidden.mockReturnValue(false);
      act(() => void document.dispatchEvent(new Event("visibilitychange")));
      hidden.mockRestore();
      expect(FakeStream.last).toBe(last);
      expect(result.current.state).toBe("paused");
    });
  });

  it("goes to the end of a long log, and back", async () => {
    const size = 300 * MiB;
    vi.stubGlobal("fetch", (request: Request) => {
      const query = new URL(request.url).searchParams;
      const offset = Number(query.get("offset"));
      const length = Math.min(Number(query.get("limit")), Math.max(0, size - offset));
      const data = length > 0 ? [{ ...piece(offset, "x"), length }] : [];

      return Promise.resolve(Response.json({ data, next_offset: offset + length, complete: false }));
    });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.more).toBe(true));
    act(() => result.current.toEnd());
    await waitFor(() => expect(result.current.state).toBe("following"));
    expect(result.current.shown).toBe(size);
    expect(result.current.start).toBeGreaterThan(size - MiB);
    act(() => result.current.toStart());
    await waitFor(() => expect(result.current.more).toBe(true));
    expect(result.current).toMatchObject({ start: 0, shown: MiB });
  });
});
