import { screen, within } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { QueryClient } from "@tanstack/react-query";
import { Findings, troubles } from "@/components/Findings";
import { healthQuery, type Finding } from "@/services/health";
import { draw } from "@/test/draw";

const good: Finding = { part: "database", ok: true, what: "answers" };
const soon: Finding = { part: "storage", ok: true, warn: true, what: "fills", next: "delete old sweeps" };
const wrong: Finding = { part: "disks", ok: false, what: "The disk of box is full.", next: "free space on box" };

describe("Findings", () => {
  it("puts what is wrong first, with the next step", async () => {
    await draw(<Findings findings={[good, soon, wrong]} />);
    const rows = screen.getAllByRole("row").slice(1);
    expect(rows.map((row) => within(row).getAllByRole("cell")[0]?.textContent)).toEqual(["Wrong", "Soon", "Good"]);
    expect(screen.getByText("free space on box")).toBeTruthy();
  });

  it("are counted for the shell", () => {
    expect(troubles([good])).toBe("");
    expect(troubles([good, soon])).toBe("1 warning");
    expect(troubles([wrong, wrong, soon])).toBe("2 problems");
  });
});

describe("healthQuery", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });
  const read = () => new QueryClient().query(healthQuery(false));

  it("reads the findings of a 503", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ ok: false, findings: [wrong] }, { status: 503 })));
    expect((await read()).findings).toEqual([wrong]);
  });

  it("tells a refusal from findings", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ detail: "No token." }, { status: 401 })));
    await expect(read()).rejects.toThrow("No token.");
  });

  it("gives up on an answer that does not come in 30 s", async () => {
    const late = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(late.signal);
    vi.stubGlobal("fetch", (_: string, { signal }: { signal: AbortSignal }) => {
      const never = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      late.abort(new DOMException("late", "TimeoutError"));

      return never;
    });
    await expect(read()).rejects.toThrow("The server does not answer.");
    expect(timeout).toHaveBeenCalledWith(30_000);
  });
});
