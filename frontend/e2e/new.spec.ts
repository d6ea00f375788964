import { get, idOf, type Sweep } from "./berth";
import { clicks, expect, expectAccessible, fields, test } from "./watched";

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

test("a sweep of one's own takes few fields", async ({ watched: page, request }) => {
  const pressed = await clicks(page);
  const changed = await fields(page);
  await page.goto("/sweeps/new");
  await page.getByLabel("Name", { exact: true }).fill("my own");
  await page.getByLabel("Image").fill("berth-test/busy:1");
  await page.getByLabel("Command").fill("/busy\ntrain\n{{ms}}\n{{lr}}");
  await page.getByLabel("From of lr").fill("0.01");
  await page.getByLabel("To of lr").fill("0.5");
  await page.getByRole("button", { name: "Add a parameter" }).click();
  await page.getByLabel("Name of parameter_2").fill("ms");
  await page.getByLabel("Type of ms").selectOption("categorical");
  await page.getByLabel("Choices, with commas of ms").fill("5, 10");
  await page.getByLabel("Metric").fill("val");
  await page.getByLabel("Trials at most").fill("3");
  await expect(page.getByText("The file is valid.")).toBeVisible();
  await page.getByRole("button", { name: "Launch" }).click();
  await expect(page.getByRole("heading", { name: "my own" })).toBeVisible();

  const { spec } = await get<Sweep>(request, `/sweeps/${idOf(page)}`);
  expect(spec).toMatchObject({
    name: "my own",
    image: "berth-test/busy:1",
    command: ["/busy", "train", "{{ms}}", "{{lr}}"],
    parameters: [
      { name: "lr", type: "float", min: 0.01, max: 0.5, log: true },
      { name: "ms", type: "categorical", values: [5, 10] },
    ],
    objective: { metric: "val", goal: "maximize" },
    limits: { max_trials: 3 },
  });
  const filled = await changed();
  expect(filled, "what counts fields hears of them").toBeGreaterThan(5);
  expect(filled, "fields that are filled").toBeLessThanOrEqual(12);
  expect(await pressed(), "presses beside them: one more parameter, launch").toBe(2);
});
