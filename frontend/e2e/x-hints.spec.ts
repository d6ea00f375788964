import type { Page } from "@playwright/test";
import { list, minute, submit, type Host, type Trial } from "./berth";
import { expect, test } from "./watched";
import { aWorker } from "./worker";

// What changes without an event is shown as it comes. Pages look for it by themselves once a minute, machines
// every 30 s: what is shown sooner came by a hint.
test.describe.configure({ mode: "serial" });

const host = `silent-${process.pid}`;
const worker = aWorker(host, { memory: "1GiB" });

/** reading counts what a page asks for from now on. */
function reading(page: Page, path: RegExp): () => number {
  let times = 0;
  page.on("request", (request) => {
    if (path.test(new URL(request.url()).pathname)) times++;
  });

  return () => times;
}

test("the metrics and the memory of a trial are shown while it reports them", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  const id = await submit(
    request,
    `name: reports
image: berth-test/busy:1
command: [/busy, epochs, "24000", "0.8", "64"]
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
  for (const steps of ["1 steps", "2 steps", "3 steps", "4 steps"]) {
    await expect(metrics).toContainText(`As a table (${steps})`, { timeout: 20_000 }); // one in 6 s
  }
  expect(memory(), "without hints it is read once a minute").toBeGreaterThan(1);
  expect(memory(), "at most every 2 s").toBeLessThan(30);
  expect(values(), "only when there is a value").toBeLessThan(12);
});

test("a machine that falls silent says so within 3 s, and so does one that is back", async ({
  watched: page,
  request,
}) => {
  test.setTimeout(4 * minute);
  const state = async () => (await list<Host>(request, "/hosts")).find((one) => one.name === host);
  await expect.poll(async () => (await state())?.state, { timeout: minute }).toBe("ready");
  await page.goto("/machines");
  const card = page.getByRole("region", { name: host, exact: true });
  await expect(card).toContainText("Ready");
  await page.evaluate(() => {
    const heard: string[] = [];
    new EventSource("/api/v1/events?live=true").addEventListener("fresh", (event) => {
      const hint = JSON.parse((event as MessageEvent<string>).data) as { kind: string; subject: string };
      if (hint.kind.startsWith("host.")) heard.push(`${hint.kind} ${hint.subject}`);
    });
    Object.assign(window, { berthHeard: heard });
  });
  const heard = () => page.evaluate(() => (window as unknown as { berthHeard: string[] }).berthHeard);
  const { id } = (await state()) as Host;

  const becomes = async (lost: boolean, text: string, hints: string[]) => {
    await expect
      .poll(async () => (await state())?.state === "lost", { timeout: 2 * minute, intervals: [250] })
      .toBe(lost);
    const since = Date.now();
    await expect.poll(heard, { timeout: 20_000, intervals: [100] }).toEqual(hints);
    const told = Date.now() - since;
    await expect(card).toContainText(text, { timeout: minute }); // a worker that is back looks at its Docker and Temporal first

    return told;
  };
  worker.signal("SIGSTOP");
  expect(await becomes(true, "Lost: its worker does not answer", [`host.silent ${id}`])).toBeLessThan(5000); // 3 s and a slow machine
  worker.signal("SIGCONT");
  expect(await becomes(false, "Ready", [`host.silent ${id}`, `host.back ${id}`])).toBeLessThan(5000);
  worker.signal("SIGKILL");
  expect((await request.delete(`/api/v1/hosts/${id}?force=true`)).status(), "others get no trials there").toBe(204);
});
