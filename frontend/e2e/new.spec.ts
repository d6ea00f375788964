import { expect, expectAccessible, test } from "./watched";

test("each error shows at its field, in the list and at its line", async ({ watched: page }) => {
  await page.goto("/sweeps/new?from=example");
  await expect(page.getByText("The file is valid.")).toBeVisible();
  await expect(page.getByRole("region", { name: "Preview" })).toContainText("24");
  await expectAccessible(page);

  const check = page.getByRole("region", { name: "Check" });
  await page.getByLabel("Name", { exact: true }).fill("");
  await expect(check).toContainText("E_NAME");
  await page.getByLabel("Name", { exact: true }).fill("good");
  await page.getByLabel("Image").fill("Not An Image");
  await expect(check).toContainText("E_IMAGE");
  await page.getByLabel("Image").fill("berth-examples/digits:1");
  await page.getByLabel("Trials at most").fill("0");
  await expect(check).toContainText("E_TRIALS");
  await page.getByLabel("Trials at most").fill("");
  await page.getByLabel("Trials at most").pressSequentially("24");
  await expect(page.getByLabel("Trials at most")).toHaveValue("24");
  await page.getByLabel("Choices, with commas of lr").fill("");
  await expect(check).toContainText("E_CHOICE");
  await page.getByLabel("Choices, with commas of lr").fill("0.1, 0.1");
  await expect(check).toContainText("E_CHOICE_DUP");
  await page.getByLabel("Choices, with commas of lr").fill("");
  await page.getByLabel("Choices, with commas of lr").pressSequentially("0.1, 0.2");
  await expect(page.getByLabel("Choices, with commas of lr")).toHaveValue("0.1, 0.2");
  await page.getByLabel("Command").fill("");
  await expect(check).toContainText("E_CMD");
  await page.getByLabel("Command").pressSequentially("python3\n--x={{nothing}}");
  await expect(page.getByLabel("Command")).toHaveValue("python3\n--x={{nothing}}");
  await expect(check).toContainText("E_TEMPLATE_PARAM");
  await expect(check).toContainText(/Line \d+/);
  await expect(page.getByRole("button", { name: "Launch" })).toBeDisabled();
});

test("form and text are one: comments stay", async ({ watched: page }) => {
  await page.goto("/sweeps/new?from=example");
  const editor = page.getByRole("textbox", { name: "Sweep file as YAML" });
  await expect(editor).toContainText("# Transfer learning on handwritten digits");
  await page.getByLabel("Metric").fill("loss");
  await expect(editor).toContainText("metric: loss");
  await expect(editor).toContainText("# Transfer learning on handwritten digits");

  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("name: [");
  await expect(page.getByText("The YAML cannot be read.")).toBeVisible();
  await page.getByRole("button", { name: "Use the example" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Use the example" }).click();
  await expect(page.getByLabel("Metric")).toHaveValue("val_accuracy");
});

test("an address that leads nowhere has a way on", async ({ watched: page }) => {
  for (const path of ["/nothing/here", "/sweeps/00000000", "/sweeps/00000000/trials/x"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { name: /There is no such/ })).toBeVisible();
    await expect(page.getByRole("link", { name: "All sweeps" })).toBeVisible();
  }
});

test("nothing is wider than a phone", async ({ watched: page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ["/sweeps", "/sweeps/new?from=example", "/machines", "/probes", "/settings"]) {
    await page.goto(path);
    await expect(page.getByRole("heading").first()).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(390);
    const heights = await page
      .getByRole("navigation", { name: "Pages" })
      .getByRole("link")
      .evaluateAll((all) => all.map((a) => Math.round(a.getBoundingClientRect().top)));
    expect(new Set(heights).size, `${path}: the navigation wraps`).toBe(1);
  }
});
