import { act, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp } from "@/test/app";

afterEach(() => vi.unstubAllGlobals());

it("does not say that every part works once the server does not answer", async () => {
  const { queries } = await drawApp("/health", {});
  const app = globalThis.fetch;
  let up = true;
  vi.stubGlobal("fetch", (request: Request | string) => {
    if (typeof request !== "string") return app(request);
    if (!up) return Promise.reject(new TypeError("refused"));

    return Promise.resolve(Response.json({ ok: true, findings: [{ part: "database", ok: true, what: "answers" }] }));
  });
  await act(() => queries.invalidateQueries({ queryKey: ["health"] }));
  expect(await screen.findByText("Every part works.")).toBeTruthy();
  up = false;
  await act(() => queries.invalidateQueries({ queryKey: ["health"] }));
  expect(await screen.findByText(/Reading the health failed/)).toBeTruthy();
  expect(screen.queryByText("Every part works.")).toBeNull();
  expect(screen.getByText(/This is as of/)).toBeTruthy();
});
