import { mkdirSync } from "node:fs";
import { expect, test } from "./watched";

// Not a test: makes the pictures of docs/web.md. SCREENSHOTS=1 scripts/test-web
// runs it once the example has ended.
test.skip(process.env.SCREENSHOTS === undefined, "pictures are made on request");

const out = process.env.SCREENSHOTS_DIR ?? "../docs/images";
const sizes = [
  { name: "1440", width: 1440, height: 600 },
  { name: "390", width: 390, height: 844 },
];

test("pictures of every page", async ({ watched: page }) => {
  test.setTimeout(180_000);
  mkdirSync(out, { recursive: true });
  await page.goto("/sweeps");
  const link = page.getByRole("table", { name: "Sweeps" }).getByRole("link", { name: "digits-transfer" }).last();
  const sweep = (await link.getAttribute("href")) ?? "";
  await page.goto(`${sweep}?tab=trials&sort=-value`);
  const trial =
    (await page.getByRole("table", { name: "Trials" }).getByRole("link").first().getAttribute("href")) ?? "";

  const pages: [string, string, RegExp][] = [
    ["sweeps", "/sweeps", /digits-transfer/],
    ["sweep", sweep, /Where and when/],
    ["trial", trial, /Output|shown, complete/],
    ["new", "/sweeps/new?from=example", /The file is valid/],
    ["machines", "/machines", /in all/],
  ];
  for (const size of sizes) {
    await page.setViewportSize(size);
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const [name, path, ready] of pages) {
        if (name === "machines" && size.width < 400) continue; // docs/web.md shows it once
        await page.goto(path);
        await expect(page.getByRole("main")).toContainText(ready);
        await expect(page.getByRole("main")).not.toContainText("Reading ");
        await page.waitForTimeout(300);
        await page.screenshot({ path: `${out}/web-${name}-${scheme}-${size.name}.png` });
      }
    }
  }
});
