import { clicks, expect, expectAccessible, test } from "./watched";

const minutes = 60_000;

// The first file: a server that is empty at first. The example that it starts runs beside the files after it; those
// that run sweeps of their own have names at the end, when the machine is free again.
test.describe.configure({ mode: "serial" });

let sweepPath = "";

test("an empty system explains itself and starts the example", async ({ watched: page }) => {
  const count = await clicks(page);
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "Try many settings at once" })).toBeVisible();
  for (const word of ["Sweep", "Trial", "Probe"])
    await expect(page.getByRole("term").filter({ hasText: word })).toBeVisible();
  await expectAccessible(page);

  await page.getByRole("button", { name: "Start the example" }).click();
  await expect(page.getByRole("heading", { name: "digits-transfer" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Overview" }).getByText("Running", { exact: true })).toBeVisible();
  const pressed = await count();
  expect(pressed, "what counts presses hears of them").toBeGreaterThan(0);
  expect(pressed, "presses from an empty browser to a sweep that runs").toBeLessThanOrEqual(3);
  sweepPath = new URL(page.url()).pathname;
});

test("a running sweep pauses and resumes", async ({ watched: page }) => {
  await page.goto(sweepPath);
  await expect(page.getByRole("status").filter({ hasText: "Live" })).toBeVisible();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  const overview = page.getByRole("region", { name: "Overview" });
  await expect(overview.getByText("Paused", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await expect(overview.getByText("Running", { exact: true })).toBeVisible();
});

test("a short id of the sweep is live, too", async ({ watched: page }) => {
  await page.goto(`${sweepPath.slice(0, "/sweeps/".length + 13)}?tab=trials`);
  await expect(page.getByRole("heading", { name: "digits-transfer" })).toBeVisible();
  await expect(page.getByRole("table", { name: "Trials" }).getByText("Running").first()).toBeVisible({
    timeout: minutes,
  });
});

test("trials show values, log and memory while they run", async ({ watched: page }) => {
  test.setTimeout(3 * minutes);
  await page.goto(`${sweepPath}?tab=trials`);
  const trials = page.getByRole("table", { name: "Trials" });
  await expect(trials.getByText("Succeeded").first()).toBeVisible({ timeout: 2 * minutes });
  await expectAccessible(page);

  await trials.getByRole("link").first().click();
  await expect(page.getByRole("heading", { name: /^Trial \d+$/ })).toBeVisible();
  await expect(page.getByLabel("Output of the attempt")).toContainText("val_accuracy", { timeout: minutes });
  await expect(page.getByRole("img", { name: /val_accuracy over \d+ steps/ })).toBeVisible({ timeout: minutes });
  await expect(page.getByRole("img", { name: /Machine memory: peak .* MiB of .* reserved/ })).toBeVisible({
    timeout: minutes,
  });
  await expectAccessible(page);
});

test("machines and probes say how full and how much", async ({ watched: page }) => {
  await page.goto("/machines");
  await expect(page.getByRole("img", { name: /^Memory of .*(reserved|free)/ })).toBeVisible(); // the example may have ended
  await expect(page.getByRole("heading", { name: "What waits, and why" })).toBeVisible();
  await expectAccessible(page);

  await page.goto("/probes");
  await page.getByRole("table", { name: "Probes" }).getByRole("link").first().click();
  await expect(page.getByText("Margin over the peak")).toBeVisible();
  await expectAccessible(page);
});
