import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { configure } from "@/api/client";
import { FirstRun } from "@/routes/FirstRun";
import { draw } from "@/test/draw";
import { preview } from "@/test/factories/sweep";

const asked: Request[] = [];

/** serve answers each call of the API by its path. */
function serve(answers: Record<string, [number, unknown]>) {
  vi.stubGlobal("fetch", (request: Request) => {
    if (!request.url.endsWith("/me")) asked.push(request);
    const [status, body] = answers[new URL(request.url).pathname] ?? [404, {}];

    return Promise.resolve(Response.json(body, { status }));
  });
}

const client = () => (
  <QueryClientProvider client={new QueryClient()}>
    <FirstRun />
  </QueryClientProvider>
);

beforeEach(() => {
  asked.length = 0;
  configure("http://localhost/api/v1");
});
afterEach(() => vi.unstubAllGlobals());

describe("FirstRun", () => {
  it("starts nothing while the example's image is missing, and says what to do", async () => {
    const warning = { code: "W_IMAGE_MISSING", pointer: "/image", detail: "No machine has the image." };
    serve({ "/api/v1/sweep-previews": [200, preview({ warnings: [warning] })] });
    await draw(client());
    await userEvent.click(screen.getByRole("button", { name: "Start the example" }));
    expect(await screen.findByText(/No machine has the image/)).toBeTruthy();
    expect(screen.getByText("make images")).toBeTruthy();
    expect(asked).toHaveLength(1);
  });

  it("sends the example as YAML, with a key that a second press uses again", async () => {
    const refused = { status: 503, detail: "The database does not answer.", code: "unavailable" };
    serve({ "/api/v1/sweep-previews": [200, preview()], "/api/v1/sweeps": [503, refused] });
    await draw(client());
    await userEvent.click(screen.getByRole("button", { name: "Start the example" }));
    expect(await screen.findByText(/database does not answer/)).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Start the example" }));
    await vi.waitFor(() => expect(asked).toHaveLength(4));

    const posts = asked.filter((request) => request.url.endsWith("/sweeps"));
    expect(posts[0]?.headers.get("Content-Type")).toBe("application/yaml");
    expect(posts[0]?.headers.get("Idempotency-Key")).toBe(posts[1]?.headers.get("Idempotency-Key"));
    expect(await posts[0]?.text()).toContain("name: digits-transfer");
  });
});
