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
      0: { data: [piece(0, "a")], next_offset: MiB, complete: false },
      [MiB]: { data: [piece(MiB, "b")], next_offset: MiB + 1, complete: true },
    });
    const { result } = renderHook(() => useLog("a"));
    await waitFor(() => expect(result.current.more).toBe(true));
    act(() => result.current.readMore());
    await waitFor(() => expect(result.current.state).toBe("complete"));
    expect(result.current.pieces).toHaveLength(2);
  });
});
