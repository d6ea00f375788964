import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import { vi } from "vitest";
import { configure } from "@/api/client";
import { newRouter } from "@/router";
import { Live } from "@/services/live";
import { newQueryClient } from "@/services/query";

/** Answers by method and path, such as "GET /me"; a missing one is 404. "never" does not arrive during the test. */
export type Answers = Record<string, [status: number, body: unknown] | "never">;

/** A silent stream of events. */
class TestStream {
  static last: TestStream | undefined;
  readyState = 0;

  constructor(readonly url: string) {
    TestStream.last = this;
  }
  addEventListener() {}
  close() {}
}

/** streamAddress is the address of the page's stream. */
export function streamAddress(): string | undefined {
  return TestStream.last?.url;
}

export const local = { name: "local", role: "admin", known_by: "local" };

/** hold lets calls wait whose method and address match, until the result is called. */
export function hold(which: RegExp): () => void {
  const before = globalThis.fetch;
  let go = () => {};
  const open = new Promise<void>((resolve) => (go = resolve));
  vi.stubGlobal("fetch", async (request: Request | string) => {
    if (typeof request !== "string" && which.test(`${request.method} ${request.url}`)) await open;

    return before(request);
  });

  return go;
}

/** drawApp shows the whole page at an address. answers may be changed while it is shown; asked grows. */
export async function drawApp(path: string, answers: Answers) {
  const asked: { call: string; body: string }[] = [];
  configure("http://localhost/api/v1");
  vi.stubGlobal("EventSource", TestStream);
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    const request =
      typeof input === "string"
        ? new Request(new URL(input, window.location.href), { method: init?.method ?? "GET" })
        : input;
    const call = `${request.method} ${new URL(request.url).pathname.replace("/api/v1", "")}`;
    asked.push({ call, body: await request.text() });
    const found = answers[call];
    if (found === "never") return new Promise<Response>(() => undefined);
    const [status, body] = found ?? (call === "GET /me" ? [200, local] : [404, { detail: "none" }]);
    if (status === 204) return new Response(null, { status });

    const text = typeof body === "string" ? body : JSON.stringify(body);

    return new Response(text, { status, headers: { "Content-Type": "application/json" } });
  });
  window.history.replaceState(null, "", path);

  const queries = newQueryClient();
  const router = newRouter({ queries, live: new Live(queries) });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );

  return { asked, router, queries };
}
