import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { request as newRequest, type APIRequestContext, type Page } from "@playwright/test";
import { expectState, list, minute, small, submit } from "./berth";
import { expect, test } from "./watched";

// A server of its own beside that of `berth dev`, on the same system: it may end without the others.
test.describe.configure({ mode: "serial" });

const port = 20_000 + (process.pid % 10_000); // below the machine's ephemeral ports
const own = `http://127.0.0.1:${port}`;
test.use({ baseURL: own });

const serverLog = join(process.env.BERTH_DATA ?? "", "second-server.log");
let server: ChildProcess | undefined;
let dev: APIRequestContext;

/** start starts the server and waits until it serves. */
async function start(): Promise<void> {
  const [database = "", temporal = ""] = readFileSync(join(process.env.BERTH_DATA ?? "", "backends"), "utf8").split(
    "\n",
  );
  const flags = ["--postgres-url", database, "--temporal-address", temporal, "--listen", `127.0.0.1:${port}`];
  const output = openSync(serverLog, "a");
  server = spawn("../.build/berth", ["server", ...flags], { stdio: ["ignore", output, output] });
  closeSync(output);
  const ready = async () =>
    fetch(`${own}/readyz`).then(
      (answer) => answer.status,
      () => 0,
    );
  await expect.poll(ready, { timeout: minute }).toBe(200);
}

async function kill(): Promise<void> {
  if (!server || server.exitCode !== null || server.signalCode !== null) return;
  const gone = once(server, "exit");
  server.kill("SIGKILL");
  await gone;
}

test.beforeAll(async () => {
  dev = await newRequest.newContext({ baseURL: process.env.BERTH_SERVER ?? "" });
  await start();
});

test.afterEach(({}, info) => {
  if (info.status !== info.expectedStatus) console.log(`the server's output:\n${readFileSync(serverLog, "utf8")}`);
});

test.afterAll(async () => {
  await kill();
  await dev.dispose();
});

/** rowOf is the row of a sweep, with its state. */
const rowOf = (page: Page, name: string, state: string) =>
  page.getByRole("table", { name: "Sweeps" }).getByRole("row").filter({ hasText: name }).filter({ hasText: state });

const badge = (page: Page, text: string) => page.getByRole("status").filter({ hasText: text });

/** mark marks a page, so that a reload is visible. */
const mark = (page: Page) => page.evaluate(() => Object.assign(window, { berthMarked: true }));
const marked = (page: Page) => page.evaluate(() => "berthMarked" in window);

test("a page outlives its server, and shows what happened meanwhile", async ({ watched: page }) => {
  test.setTimeout(3 * minute);
  await submit(dev, small("before"));
  await page.goto("/sweeps");
  await expect(badge(page, "Live")).toBeVisible();
  await expect(rowOf(page, "before", "Succeeded")).toBeVisible({ timeout: minute });
  await mark(page);

  await kill();
  await expect(badge(page, "Reconnecting")).toBeVisible();
  await expectState(dev, await submit(dev, small("meanwhile")), "succeeded");
  await expect(rowOf(page, "before", "Succeeded")).toBeVisible(); // earlier rows stay
  await expect(rowOf(page, "meanwhile", "")).toHaveCount(0);

  await start();
  await expect(badge(page, "Live")).toBeVisible({ timeout: minute });
  await expect(rowOf(page, "meanwhile", "Succeeded")).toBeVisible();
  expect(await marked(page), "the page was not loaded anew").toBe(true);
});

const slow = `name: slow
image: berth-test/busy:1
command: [/busy, epochs, "60000", "0.5"]
parameters: [{name: n, type: fixed, value: 1}]
search: {algorithm: random}
objective: {metric: val, goal: maximize}
limits: {max_trials: 1}
resources: {device: cpu, cpus: 0.1, memory: 64MiB}
probe: {mode: "off"}
metrics: {source: stdout}
`; // a line each 15 s, four of them

test(
  "a log follows its stream, over a pause and a server that was gone",
  { tag: "@nightly" },
  async ({ watched: page }) => {
    test.setTimeout(4 * minute);
    const id = await submit(dev, slow);
    const log = page.getByRole("region", { name: "Log" });
    const says = (text: RegExp) => expect(log.getByRole("status")).toHaveText(text, { timeout: minute });
    const epochs = (...shown: number[]) =>
      expect
        .poll(async () => (await log.innerText()).match(/(?<="epoch": )\d/g) ?? [], { timeout: minute })
        .toEqual(shown.map(String));
    const written = async (epoch: number) => {
      const [attempt] = await list<{ id: string }>(dev, `/sweeps/${id}/trials/1/attempts`);
      const text = async () => (await dev.get(`/api/v1/attempts/${attempt?.id ?? ""}/log`)).text();
      await expect.poll(text, { timeout: minute }).toContain(`"epoch": ${epoch}`);
    };

    await expect.poll(() => list(dev, `/sweeps/${id}/trials`), { timeout: minute }).toHaveLength(1);
    await page.goto(`/sweeps/${id}/trials/1`);
    await says(/, following as it is written$/);
    await epochs(1);

    await page.getByRole("button", { name: /pause live updates/ }).click();
    await says(/, paused .* resume live updates/);
    await written(2);
    await epochs(1);
    await page.getByRole("button", { name: /resume live updates/ }).click();
    await epochs(1, 2);
    await says(/, following as it is written$/);

    await kill();
    await says(/, trying again$/);
    await written(3);
    await start();
    await epochs(1, 2, 3, 4);
    await says(/, complete$/);
  },
);

/** turn hides or shows a page, as a browser does when another tab comes before it. */
const turn = (page: Page, hidden: boolean) =>
  page.evaluate((now) => {
    Object.defineProperty(document, "hidden", { value: now, configurable: true });
    const visibilityState = now ? "hidden" : "visible";
    Object.defineProperty(document, "visibilityState", { value: visibilityState, configurable: true });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true })); // reads go on by it
  }, hidden);

test("a tab that is hidden for long closes its stream, and is right when it is shown", async ({ watched: page }) => {
  test.setTimeout(3 * minute);
  let opened = 0;
  let closed = 0;
  let read = 0;
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname === "/api/v1/events") opened++;
    if (pathname === "/api/v1/sweeps") read++;
  });
  page.on("requestfailed", (request) => {
    if (new URL(request.url()).pathname === "/api/v1/events") closed++;
  });
  await page.clock.install();
  await page.goto("/sweeps");
  await expect(badge(page, "Live")).toBeVisible();
  await expect(rowOf(page, "meanwhile", "Succeeded").first()).toBeVisible();
  expect([opened, closed]).toEqual([1, 0]);

  // A short look at another tab closes nothing.
  await turn(page, true);
  await page.clock.fastForward(20_000);
  await turn(page, false);
  await expectState(dev, await submit(dev, small("short look")), "succeeded");
  await expect(rowOf(page, "short look", "Succeeded")).toBeVisible();
  expect([opened, closed]).toEqual([1, 0]);

  await turn(page, true);
  await page.clock.fastForward(31_000);
  await expect.poll(() => closed).toBe(1);
  const before = read;
  await expectState(dev, await submit(dev, small("long look")), "succeeded");
  expect(read, "lists that a hidden tab reads").toBe(before);
  await expect(rowOf(page, "long look", "")).toHaveCount(0);

  await turn(page, false);
  await expect(rowOf(page, "long look", "Succeeded")).toBeVisible();
  await expect(badge(page, "Live")).toBeVisible();
  expect([opened, closed]).toEqual([2, 1]);
});
