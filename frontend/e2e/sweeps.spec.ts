import { expect, expectAccessible, test } from "./watched";

const minutes = 60_000;

// The tests of this file are one story on one server, from empty on.
test.describe.configure({ mode: "serial" });

let sweepPath = "";

test("an empty system explains itself and starts the example", async ({ watched: page }) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "Try many settings at once" })).toBeVisible();
  for (const word of ["Sweep", "Trial", "Probe"])
    await expect(page.getByRole("term").filter({ hasText: word })).toBeVisible();
  await expectAccessible(page);

  await page.getByRole("button", { name: "Start the example" }).click();
  await expect(page.getByRole("heading", { name: "digits-transfer" })).toBeVisible();
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
  await expect(page.getByRole("img", { name: /^Memory of .*reserved/ })).toBeVisible();
  await expect(page.getByRole("heading", { name: "What waits, and why" })).toBeVisible();
  await expectAccessible(page);

  await page.goto("/probes");
  await page.getByRole("table", { name: "Probes" }).getByRole("link").first().click();
  await expect(page.getByText("Margin over the peak")).toBeVisible();
  await expectAccessible(page);
});

test("health names each part", async ({ watched: page }) => {
  await page.goto("/health");
  await expect(page.getByRole("table", { name: "Parts of Berth" })).toContainText("database");
  await expectAccessible(page);
});

test("a failed trial says why, and a cancel asks first", async ({ watched: page }) => {
  test.setTimeout(3 * minutes);
  await page.goto("/sweeps/new?from=example");
  await page.getByLabel("Name", { exact: true }).fill("fails");
  await page.getByLabel("Command").fill('python3\n-c\nimport sys; print("lr", "{{lr}}"); sys.exit(3)');
  await expect(page.getByText("The file is valid.")).toBeVisible();
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByRole("heading", { name: "fails" })).toBeVisible();
  await page.getByRole("tab", { name: "Trials" }).click();
  await expect(page.getByRole("table", { name: "Trials" }).getByText("Failed").first()).toBeVisible({
    timeout: 2 * minutes,
  });
  await page.getByRole("table", { name: "Trials" }).getByRole("link").first().click();
  await expect(page.getByText("The program ended with an error").first()).toBeVisible();
  await expect(page.getByText("exit code 3").first()).toBeVisible();

  await page.goBack();
  const cancel = page.getByRole("button", { name: "Cancel…" });
  if (await cancel.isVisible()) {
    await cancel.click();
    await expect(page.getByText("Results so far are kept.")).toBeVisible();
    await page.getByRole("button", { name: "Cancel sweep" }).click();
    await expect(
      page
        .getByRole("region", { name: "Overview" })
        .getByText(/Cancel(ing|ed)|Failed/)
        .first(),
    ).toBeVisible();
  }
});

test("the example ends with a best trial and a report", async ({ watched: page }) => {
  test.setTimeout(10 * minutes);
  await page.goto(sweepPath);
  await expect(page.getByRole("region", { name: "Overview" }).getByText("Succeeded", { exact: true })).toBeVisible({
    timeout: 9 * minutes,
  });
  await expect(page.getByRole("img", { name: /^val_accuracy by trial: \d+ trials done/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Parallel coordinates of/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Timeline of/ })).toBeVisible();
  const history = page.getByRole("region", { name: "History" });
  await history.getByText("View as table").click();
  await history.getByRole("checkbox", { name: "Choose trial 2", exact: true }).check();
  await expect(page).toHaveURL(/trials=(%22)?2/);
  await expect(page.getByRole("group", { name: "Chosen trials" })).toContainText("1 trial chosen");
  await expectAccessible(page);
  await page.getByRole("tab", { name: "Trials" }).click();
  await page.getByRole("button", { name: /^val_accuracy/ }).click();
  await expect(page).toHaveURL(/sort=-value/);
  await expect(page.getByRole("table", { name: "Trials" }).getByRole("link").first()).toContainText("(best)");
  await page.getByRole("tab", { name: "Report" }).click();
  await expect(page.getByText("One trial at a time would take")).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("tab", { name: "Spec" }).click();
  await expect(page.getByLabel("Sweep file")).toContainText("name: digits-transfer");

  // All this works on a phone, too.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto("/sweeps");
  await expect(page.getByRole("table", { name: "Sweeps" })).toContainText("digits-transfer");
  await page.getByRole("combobox", { name: "Order" }).selectOption("By name");
  await expect(page).toHaveURL(/sort=name/);
  await page.getByRole("checkbox", { name: "Choose digits-transfer", exact: true }).first().check();
  await page.getByRole("checkbox", { name: "Choose fails", exact: true }).first().check();
  await page.getByRole("button", { name: "Compare" }).click();
  await expect(page.getByRole("table", { name: "Sweep files side by side" })).toContainText("command");
  await expectAccessible(page);
  await page.goto("/sweeps");
  await expectAccessible(page);
});
