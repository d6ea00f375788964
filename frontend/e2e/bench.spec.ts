import { expect, test, type CDPSession, type Page } from "@playwright/test";

// Not a test: prints how fast the pages are with 50,000 trials. bench/web/run runs it.
test.skip(process.env.BENCH_SWEEP === undefined, "figures are taken on request");

const sweep = process.env.BENCH_SWEEP ?? "";
const minutes = Number(process.env.BENCH_MINUTES ?? "5");

/** usable is the time from asking for a page until its table shows rows, in ms. */
async function usable(page: Page, path: string, table: string): Promise<number> {
  const began = performance.now();
  await page.goto(path);
  await expect(page.getByRole("table", { name: table }).getByRole("row").nth(5)).toBeVisible();

  return performance.now() - began;
}

/** frames scrolls for some seconds by the wheel and counts what the browser draws in a second. */
async function frames(page: Page, seconds: number): Promise<number> {
  await page.evaluate(() => {
    const counter = window as unknown as { drawn: number };
    counter.drawn = 0;
    const count = () => {
      counter.drawn++;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
  });
  const began = performance.now();
  const first = await page.evaluate(() => (window as unknown as { drawn: number }).drawn);
  while (performance.now() - began < seconds * 1000) await page.mouse.wheel(0, 200);
  const drawn = (await page.evaluate(() => (window as unknown as { drawn: number }).drawn)) - first;

  return drawn / ((performance.now() - began) / 1000);
}

/** heap is the memory of the page's script after a collection, in MiB. */
async function heap(devtools: CDPSession): Promise<number> {
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");

  return usedSize / (1 << 20);
}

function say(what: string, figure: number, unit: string): void {
  console.log(`${what.padEnd(60)} ${figure.toFixed(figure < 10 ? 2 : 0)} ${unit}`);
}

test("figures", async ({ page }) => {
  test.setTimeout((minutes + 5) * 60_000);
  await page.setViewportSize({ width: 1440, height: 900 });
  say("list of 1,000 sweeps, first load, until it shows rows", await usable(page, "/sweeps", "Sweeps"), "ms");
  say("  again", await usable(page, "/sweeps", "Sweeps"), "ms");
  say("  scrolling", await frames(page, 5), "frames/s");
  say("sweep of 50,000 trials, until its table shows rows", await usable(page, `${sweep}?tab=trials`, "Trials"), "ms");
  say("  by value", await usable(page, `${sweep}?tab=trials&sort=-value`, "Trials"), "ms");
  say("  scrolling", await frames(page, 10), "frames/s");

  const devtools = await page.context().newCDPSession(page);
  await usable(page, `${sweep}?tab=trials`, "Trials");
  const held = [await heap(devtools)];
  for (let minute = 1; minute <= minutes; minute++) {
    await page.waitForTimeout(60_000); // the load is on: this is the time that is measured
    held.push(await heap(devtools));
  }
  console.log(
    `heap of the page over ${minutes} min of changes, each minute`.padEnd(60),
    held.map((mib) => mib.toFixed(1)).join(" "),
    "MiB",
  );
});
