import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expectState, get, idOf, list, minute, small, submit, type Host, type Sweep, type Trial } from "./berth";
import { expect, test } from "./watched";

// Commands of a user to existing objects. The API, beside the page, shows their results.
test.describe.configure({ mode: "serial" });

let sweep = "";

test("a sweep of six small trials ends", async ({ request }) => {
  test.setTimeout(3 * minute);
  sweep = await submit(request, small("small"));
  await expectState(request, sweep, "succeeded");
  const trials = await list<Trial>(request, `/sweeps/${sweep}/trials`);
  expect(trials.map((trial) => trial.value ?? trial.state).sort()).toEqual([
    0.3,
    0.5,
    0.7,
    "failed",
    "failed",
    "failed",
  ]);
});

/** exported is the file that the browser saves when the user exports the shown trials. */
async function exported(page: Page, kind: string): Promise<{ name: string; text: string }> {
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByRole("menuitem", { name: kind }).click();
  const download = await saved;

  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
}

/** rowsOf reads CSV (RFC 4180). */
function rowsOf(text: string): string[][] {
  const cells = [...text.matchAll(/("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n)/g)];
  const rows: string[][] = [[]];
  for (const [, cell = "", end] of cells) {
    rows.at(-1)?.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end !== ",") rows.push([]);
  }

  return rows.slice(0, -1);
}

test("exports hold what the API says of each trial", async ({ watched: page, request }) => {
  const trials = await list<Trial & Record<string, unknown>>(request, `/sweeps/${sweep}/trials`);
  await page.goto(`/sweeps/${sweep}?tab=trials`);
  const { name, text } = await exported(page, "CSV");
  expect(name).toBe(`berth-${sweep.slice(0, 8)}-trials.csv`);
  const [head = [], ...rows] = rowsOf(text);
  expect(rows).toHaveLength(6);
  for (const [i, row] of rows.entries()) {
    const read = Object.fromEntries(head.map((column, j) => [column, row[j]]));
    const trial = trials[i];
    const latest = trial?.latest_attempt as Record<string, unknown>;
    const written = (v: unknown) => (typeof v === "string" ? v : v === undefined ? "" : JSON.stringify(v));
    expect(read).toMatchObject({
      number: written(trial?.number),
      id: trial?.id,
      state: trial?.state,
      value: written(trial?.value),
      attempts: written(trial?.attempts),
      failure_kind: written(trial?.failure_kind),
      message: written(trial?.message),
      host: written(latest.host_name),
      device: written(latest.device_id),
      memory_reserved_bytes: written(latest.memory_bytes),
      memory_peak_bytes: written(latest.memory_peak_bytes || undefined), // 0 = not measured
      "params.what": trial?.params.what,
      "params.n": written(trial?.params.n),
      "params.note": `'=1+1, "two"`, // no spreadsheet runs it
    });
  }

  await page.goto(`/sweeps/${sweep}?tab=trials&sort=-value&state=succeeded&min=0.4`);
  const lines = await exported(page, "JSON lines");
  expect(lines.name).toBe(`berth-${sweep.slice(0, 8)}-trials.jsonl`);
  const read = lines.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Trial);
  const shown = await list<Trial>(request, `/sweeps/${sweep}/trials?state=succeeded&value_min=0.4`);
  expect(read.map((trial) => trial.number)).toEqual(shown.map((trial) => trial.number));
  expect(read.map((trial) => trial.value).sort()).toEqual([0.5, 0.7]);
});

/** more clicks an entry below More, and answers its question. */
async function more(page: Page, item: string, action: string): Promise<void> {
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: item }).click();
  await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
}

test("a clone has the same file, and what failed runs again alone", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  await page.goto(`/sweeps/${sweep}`);
  await more(page, "Clone…", "Clone");
  await expect(page).not.toHaveURL(new RegExp(sweep));
  await expect(page.getByRole("heading", { name: "small" })).toBeVisible();
  const clone = await get<Sweep>(request, `/sweeps/${idOf(page)}`);
  expect(clone.spec).toEqual((await get<Sweep>(request, `/sweeps/${sweep}`)).spec);

  await page.goto(`/sweeps/${sweep}`);
  await page.getByRole("button", { name: "Rerun failed…" }).click();
  await expect(page.getByRole("dialog")).toContainText("the values of 3 trials that failed");
  await page.getByRole("dialog").getByRole("button", { name: "Rerun" }).click();
  await expect(page).not.toHaveURL(new RegExp(sweep));
  const again = idOf(page);
  await expectState(request, again, "failed"); // as each of its trials failed again
  const values = (trials: Trial[]) => trials.map((trial) => trial.params).sort((a, b) => Number(a.n) - Number(b.n));
  expect(values(await list<Trial>(request, `/sweeps/${again}/trials`))).toEqual(
    values((await list<Trial>(request, `/sweeps/${sweep}/trials`)).filter((trial) => trial.state === "failed")),
  );
  await expect(page.getByRole("region", { name: "Overview" }).getByText("Failed", { exact: true })).toBeVisible();
  await expectState(request, clone.id, "succeeded");
});

test("two sweeps compare side by side", async ({ watched: page, request }) => {
  const other = await submit(
    request,
    small("other").replace("[3, 5, 7]", "[8, 9]").replace("max_trials: 6", "max_trials: 4"),
  );
  await expectState(request, other, "succeeded");
  await page.goto(`/compare?ids=${encodeURIComponent(JSON.stringify([sweep, other]))}`);
  const best = page.getByRole("table", { name: "Best values" });
  await expect(best.getByRole("row", { name: /^small / })).toContainText("0.7");
  await expect(best.getByRole("row", { name: /^other / })).toContainText("0.9");
  const files = page.getByRole("table", { name: "Sweep files side by side" });
  await expect(files.getByRole("row", { name: "limits.max_trials 6 4" })).toBeVisible();
  await expect(files).toContainText("3, 5, 7");
  await expect(files).not.toContainText("command"); // it is equal
  await page.getByRole("checkbox", { name: /^Show what is equal/ }).check();
  await expect(files).toContainText("/busy, {{what}}, {{n}}, 0.{{n}}");
});

test("a deleted sweep is gone", async ({ watched: page, request }) => {
  const doomed = (await list<Sweep>(request, "/sweeps?name=other"))[0]?.id ?? "";
  await page.goto(`/sweeps/${doomed}`);
  await more(page, "Delete…", "Delete");
  await expect(page).toHaveURL(/\/sweeps$/);
  await expect(page.getByRole("table", { name: "Sweeps" })).not.toContainText("other");
  expect((await request.get(`/api/v1/sweeps/${doomed}`)).status()).toBe(404);
});

test("a probe that is forgotten is gone", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  // Long enough to be measured on a busy machine, too: without a measurement there is no probe.
  const lasting = small("probed").replace("[3, 5, 7]", "[1500, 2500, 3500]");
  const probed = await submit(
    request,
    lasting.replace('{mode: "off"}', "{mode: full}").replace("memory: 64MiB", "memory: auto"),
  );
  await expectState(request, probed, "succeeded");
  const key =
    (await list<Trial>(request, `/sweeps/${probed}/trials`)).find((trial) => trial.params.what === "train")
      ?.shape_key ?? "";
  await page.goto("/probes");
  await page.getByRole("table", { name: "Probes" }).locator(`a[href$="${key}"]`).click();
  await page.getByRole("button", { name: "Forget…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Forget" }).click();
  await expect(page).toHaveURL(/\/probes$/);
  await expect(page.getByRole("heading", { name: "Probes" })).toBeVisible();
  await expect(page.locator(`a[href$="${key}"]`)).toHaveCount(0);
  expect((await request.get(`/api/v1/probes/${key}`)).status()).toBe(404);
});

test("a machine that drains takes no trials until it is made ready", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  const host = (await list<Host>(request, "/hosts")).find((one) => one.state === "ready");
  const state = async () => (await get<Host>(request, `/hosts/${host?.id ?? ""}`)).state;
  await page.goto("/machines");
  const card = page.getByRole("region", { name: host?.name, exact: true });
  await card.getByRole("button", { name: /^Drain / }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await expect(card).toContainText("Draining: takes no new trials");
  expect(await state()).toBe("draining");

  const waits = await submit(request, small("waits"));
  const waiting = page.getByRole("table", { name: "What waits" }).getByRole("row", { name: /of waits/ });
  await expect(waiting.first()).toContainText(/drain/, { timeout: minute });
  await expect(waiting.first()).toContainText("Unknown"); // no end of a trial ends a drain
  expect((await get<Sweep>(request, `/sweeps/${waits}`)).counts).toMatchObject({ running: 0, succeeded: 0 });

  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const edge = await page.getByRole("region", { name: "What waits, and why" }).boundingBox();
  expect((edge?.x ?? 0) + (edge?.width ?? 391), "the queue is no wider than a phone").toBeLessThanOrEqual(390);
  if (size) await page.setViewportSize(size);

  await card.getByRole("button", { name: /^Make .*ready/ }).click();
  await expect(card).toContainText("Ready");
  expect(await state()).toBe("ready");
  await expectState(request, waits, "succeeded");
  await expect(waiting).toHaveCount(0);
});
