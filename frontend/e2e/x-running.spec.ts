import type { Page } from "@playwright/test";
import { list, minute, submit, type Trial } from "./berth";
import { expect, test } from "./watched";

// Most of what a trial that runs reports is no event: its page reads it again every few seconds.

/** reading counts a page's requests from now on. */
function reading(page: Page, path: RegExp): () => number {
  let times = 0;
  page.on("request", (request) => {
    if (path.test(new URL(request.url()).pathname)) times++;
  });

  return () => times;
}

test(
  "the metrics and the memory of a trial are shown while it reports them",
  { tag: "@nightly" },
  async ({ watched: page, request }) => {
    test.setTimeout(5 * minute);
    const id = await submit(
      request,
      `name: reports
image: berth-test/busy:1
command: [/busy, epochs, "48000", "0.8", "64"]
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
limits: {max_trials: 1}
resources: {device: cpu, cpus: 0.1, memory: 256MiB}
probe: {mode: "off"}
metrics: {source: stdout}
`,
    );
    await expect
      .poll(async () => (await list<Trial>(request, `/sweeps/${id}/trials`))[0]?.state, { timeout: minute })
      .toBe("running");
    await page.goto(`/sweeps/${id}/trials/1`);
    const metrics = page.getByRole("region", { name: "Metrics" });
    await expect(metrics).toBeVisible();
    const memory = reading(page, /\/attempts\/[^/]+\/memory$/);
    const values = reading(page, /\/attempts\/[^/]+\/metrics$/);
    await expect(metrics).toContainText(/As a table \([1-3] steps\)/, { timeout: minute }); // before its end, of which an event tells
    await expect(metrics).toContainText("As a table (4 steps)", { timeout: 2 * minute });
    expect(memory(), "no event tells of it").toBeGreaterThan(1);
    expect(values(), "every few seconds").toBeGreaterThan(1);
  },
);
