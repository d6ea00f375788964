import { readdirSync, readFileSync } from "node:fs";
import { test as plain } from "@playwright/test";
import { expect, test, watch } from "./watched";

plain("what no page may do is seen", async ({ context, page, baseURL }) => {
  const origin = new URL(baseURL ?? "").origin;
  const wrong = watch(context, origin);
  await page.goto("/sweeps");
  await expect(page.getByRole("heading").first()).toBeVisible();
  expect(wrong).toEqual([]);

  await page.evaluate(() => fetch("https://example.invalid/").catch(() => undefined));
  await expect
    .poll(() => wrong.join())
    .toMatch(/Content Security Policy.*connect-src|connect-src.*Content Security Policy/);
  wrong.length = 0;
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "1";
    document.head.append(script);
  });
  await expect
    .poll(() => wrong.join())
    .toMatch(/Content Security Policy.*script-src|script-src.*Content Security Policy/);
  wrong.length = 0;
  await page.evaluate(
    () =>
      void setTimeout(() => {
        throw new Error("on purpose");
      }),
  );
  await expect.poll(() => wrong).toEqual(["error in the page: on purpose"]);
  wrong.length = 0;
  const elsewhere = origin.replace("127.0.0.1", "localhost");
  const other = await context.newPage(); // a page that the test does not name
  await other.goto(`${elsewhere}/sweeps`);
  expect(wrong).toContain(`request to ${elsewhere}/sweeps`);
});

test("and fails the test in which it happened", async ({ watched: page }) => {
  test.fail();
  await page.goto("/sweeps");
  await page.evaluate(() => fetch("https://example.invalid/").catch(() => undefined));
});

test("every file watches its pages", () => {
  const folder = new URL(".", import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith(".spec.ts"));
  expect(files.length).toBeGreaterThan(5);
  const unwatched = files.filter(
    (file) => !/import \{[^}]*\btest\b[^}]*\} from "\.\/watched"/.test(readFileSync(new URL(file, folder), "utf8")),
  );
  expect(unwatched).toEqual(["bench.spec.ts"]); // takes figures
});
