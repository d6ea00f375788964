import { afterEach, describe, expect, it, vi } from "vitest";
import { keepDraft, readDraft } from "@/lib/draft";
import { keyFor } from "@/lib/keys";

afterEach(() => {
  vi.restoreAllMocks();
  sessionStorage.clear();
});

function fill() {
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
}

describe("what a tab keeps", () => {
  it("is the last text, never an older one", () => {
    keepDraft("", "name: old");
    expect(readDraft("")).toBe("name: old");
    fill();
    keepDraft("", "name: new");
    expect(readDraft("")).toBeNull();
  });

  it("is one key for one text, and a launch goes on without room", () => {
    const key = keyFor("name: a");
    expect(keyFor("name: a")).toBe(key);
    expect(keyFor("name: b")).not.toBe(key);
    fill();
    expect(keyFor("name: c")).toMatch(/^[0-9a-f]{32}$/);
  });
});
