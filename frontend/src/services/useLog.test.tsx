import { act, renderHook, waitFor } from "@testing-library/react";
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
