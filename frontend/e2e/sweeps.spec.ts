import { readFileSync } from "node:fs";
import { type Page } from "@playwright/test";
import { list, minute, submit, type Sweep } from "./berth";
import { expect, expectAccessible, test } from "./watched";

// The pages of the example, which aa-first.spec.ts starts, during its run and after
// it.
test.describe.configure({ mode: "serial" });

/** example is the address of the example, which is started when it is not there. */
async function example(page: Page): Promise<string> {
  const [first] = await list<Sweep>(page.request, "/sweeps?name=digits-transfer&sort=created_at");
  const file = new URL("../../examples/digits/sweep.yaml", import.meta.url);

  return `/sweeps/${first === undefined ? await submit(page.request, readFileSync(file, "utf8")) : first.id}`;
}

test("health names each part", async ({ watched: page }) => {
  await page.goto("/health");
  await expect(page.getByRole("table", { name: "Parts of Berth" })).toContainText("database");
  await expectAccessible(page);
});

test("a failed trial says why, and a cancel asks first", async ({ watched: page }) => {
  test.setTimeout(3 * minute);
  await page.goto("/sweeps/new?from=example");
  await page.getByLabel("Name", { exact: true }).fill("fails");
  await page
    .getByLabel("Command")
    .fill('python3\n-c\nimport sys; print("lr", "{{lr}}"); sys.exit(3)\n/trial/in/params.json');
  await expect(page.getByText("The file is valid.")).toBeVisible();
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByRole("heading", { name: "fails" })).toBeVisible();
  await page.getByRole("tab", { name: "Trials" }).click();
  await expect(page.getByRole("table", { name: "Trials" }).getByText("Failed").first()).toBeVisible({
    timeout: 2 * minute,
  });
  const failed = page.getByRole("table", { name: "Trials" }).getByRole("row").filter({ hasText: "Failed" });
  await failed.first().getByRole("link").first().click();
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
  test.setTimeout(10 * minute);
  await page.goto(await example(page));
  await expect(page.getByRole("region", { name: "Overview" }).getByText("Succeeded", { exact: true })).toBeVisible({
    timeout: 9 * minute,
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
