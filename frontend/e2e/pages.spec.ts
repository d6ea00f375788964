import type { APIRequestContext } from "@playwright/test";
import { list, minute, small, submit, type Sweep, type Trial } from "./berth";
import { expect, expectAccessibleInBoth, test } from "./watched";

/** ended is a sweep with succeeded and failed trials, and their footprints. */
async function ended(request: APIRequestContext): Promise<string> {
  const is = async () => (await list<Sweep>(request, "/sweeps?name=pages&state=succeeded"))[0]?.id ?? "";
  if ((await is()) === "") {
    // Long enough to be measured, also on a machine that is busy.
    const lasting = small("pages").replace("[3, 5, 7]", "[1500, 2500, 3500]");
    await submit(request, lasting.replace('{mode: "off"}', "{mode: full}"));
  }
  await expect.poll(is, { timeout: minute }).not.toBe("");

  return is();
}

test("no page has a serious finding of axe, in the light or in the dark", async ({ watched: page, request }) => {
  test.setTimeout(4 * minute);
  const sweep = `/sweeps/${await ended(request)}`;
  const trials = await list<Trial>(request, `${sweep}/trials`);
  const bad = trials.find((trial) => trial.state === "failed")?.number ?? 0;
  const good = trials.find((trial) => trial.state === "succeeded");
  const other = await submit(request, small("beside pages"));
  const both = encodeURIComponent(JSON.stringify([sweep.split("/").at(-1), other]));

  const pages: [string, string | RegExp][] = [
    ["/sweeps", "shown of"],
    [sweep, "Where and when"],
    [`${sweep}?tab=trials`, "Failed"],
    [`${sweep}?tab=report`, "Machine time in use"],
    [`${sweep}?tab=spec`, "name: pages"],
    [`${sweep}/trials/${good?.number ?? 0}`, "shown, complete"],
    [`${sweep}/trials/${bad}`, "exit code"],
    ["/sweeps/new", "The file is valid."],
    ["/sweeps/new?from=example", "The file is valid."],
    ["/machines", "What waits, and why"],
    ["/probes", "Shape"],
    [`/probes/${good?.shape_key ?? ""}`, "Margin over the peak"],
    [`/compare?ids=${both}`, "Best so far"],
    ["/health", "database"],
    ["/settings", "Temporal namespace"],
    ["/nothing/here", "There is no such"],
  ];
  for (const [path, ready] of pages) {
    await test.step(path, async () => {
      await page.goto(path);
      await expect(page.getByRole("main")).toContainText(ready);
      await expect(page.getByRole("main")).not.toContainText("Reading ");
      await expectAccessibleInBoth(page);
    });
  }

  await test.step("a question before something is lost", async () => {
    await page.goto(sweep);
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await expect(page.getByRole("dialog").getByRole("button", { name: "Delete" })).toBeVisible();
    await expect(page.getByRole("menu", { includeHidden: true })).toHaveCount(0);
    await expectAccessibleInBoth(page);
  });

  await test.step("a new sweep with problems, in the form and in the YAML", async () => {
    await page.goto("/sweeps/new?from=example");
    await page.getByLabel("Name", { exact: true }).fill("");
    await page.getByLabel("Command").fill("python3\n--x={{nothing}}");
    await expect(page.getByRole("region", { name: "Check" })).toContainText("E_TEMPLATE_PARAM");
    await expectAccessibleInBoth(page);
    await page.getByRole("textbox", { name: "Sweep file as YAML" }).focus();
    await page.locator(".cm-lint-marker-error").first().hover();
    await expect(page.locator(".cm-tooltip-lint")).toBeVisible();
    await expectAccessibleInBoth(page);
  });
});
