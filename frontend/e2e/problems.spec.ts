import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { badFiles, otherwise, type BadFile } from "./problems";
import { expect, test } from "./watched";

interface Item {
  code: string;
  pointer: string;
  detail: string;
}

/** paste puts a text in place of the whole file, as a person does. */
async function paste(page: Page, text: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: "Sweep file as YAML" });
  await editor.focus();
  await page.keyboard.press("Control+a");
  await editor.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
  await page.keyboard.press("Control+Home"); // the editor draws only lines near the cursor of a long file
}

/** judged is the server's judgement of a file. */
async function judged(page: Page, text: string): Promise<Item[]> {
  const [answer] = await Promise.all([
    page.waitForResponse(
      (one) => one.url().endsWith("/sweep-validations") && one.request().postDataBuffer()?.toString() === text,
    ),
    paste(page, text),
  ]);
  expect(answer.status()).toBe(200);

  return ((await answer.json()) as { problems: Item[] }).problems;
}

// One run shows all that is missing.
const soft = expect.configure({ soft: true, timeout: 5000 });

const squeezed = (text: string) => text.replace(/\s+/g, " ").trim();

async function expectShown(page: Page, { text, want }: BadFile): Promise<void> {
  const items = await judged(page, text);
  const codes = (list: { code: string; pointer: string }[]) => list.map((one) => `${one.code} ${one.pointer}`);
  soft(codes(items), "what the server says").toEqual(codes(want));

  const list = page.getByRole("region", { name: "Check" });
  const lines = text.split("\n");
  const form = page.getByRole("region", { name: "Form" });
  for (const [i, { code, at, field }] of want.entries()) {
    const detail = squeezed(items[i]?.detail ?? "");
    const line = lines.findIndex((one) => one.includes(at)) + 1;
    const shown = list.getByRole("listitem").filter({ hasText: `Line ${line}: ${detail} ${code}` });
    await soft(shown, `in the list: line ${line}, ${code}`).not.toHaveCount(0);
    if (want.length < 10) {
      const marked = page.locator(".cm-line:has(.cm-lintRange-error, .cm-lintPoint-error)");
      await soft(marked.filter({ hasText: squeezed(at).slice(0, 40) }), `in the editor: ${at}`).not.toHaveCount(0);
    }
    if (field === undefined) continue;
    const exact = form.getByLabel(field, { exact: true }).or(form.getByRole("group", { name: field, exact: true }));
    await soft(exact, `${code} at the field ${field}`).toHaveAccessibleDescription(
      new RegExp(detail.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")),
    );
  }
  await expect(page.getByRole("button", { name: "Launch" })).toBeDisabled();
}

for (const [name, files, tag] of [
  ["a problem", badFiles.slice(0, 4), []],
  ["every problem", badFiles.slice(4), ["@nightly"]],
] as const) {
  test(
    `${name} that a typed file can have shows at its field, in the list and at its line`,
    { tag: [...tag] },
    async ({ watched: page }) => {
      test.setTimeout(180_000);
      await page.goto("/sweeps/new");
      await expect(page.getByText("The file is valid.")).toBeVisible();
      for (const bad of files) await test.step(bad.name, () => expectShown(page, bad));
    },
  );
}

test("every code that the server has is in the table, or says why not", () => {
  const source = readFileSync(new URL("../../internal/sweepfile/spec/codes.go", import.meta.url), "utf8");
  const codes = [...source.matchAll(/= "(E_\w+)"/g)].map(([, code]) => code);
  expect(codes.length).toBeGreaterThan(50);
  const known = new Set([...badFiles.flatMap((bad) => bad.want.map((one) => one.code)), ...Object.keys(otherwise)]);
  expect(codes.filter((code) => !known.has(code ?? ""))).toEqual([]);
});

test("a mark in the editor tells its problem", async ({ watched: page }) => {
  await page.goto("/sweeps/new");
  await paste(page, "name: good\nimage: Bad\ncommand: [a]\n");
  await page.locator(".cm-lint-marker-error").hover();
  await expect(page.locator(".cm-tooltip-lint")).toContainText("must be in lower case");
});

test("a file that is too large says so, also one that the browser cannot keep", async ({ watched: page }) => {
  await page.goto("/sweeps/new");
  for (const size of [(1 << 20) + 1, 6 << 20]) {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Open a file" }).click();
    const text = `name: large\n${"# a line of a comment\n".repeat(size / 22 + 1)}`;
    await (await chooser).setFiles({ name: "large.yaml", mimeType: "application/yaml", buffer: Buffer.from(text) });
    const replace = page.getByRole("dialog").getByRole("button", { name: "Open" });
    if (size > 2 << 20) await replace.click(); // the first one is only here
    await expect(page.getByText(/Checking the file failed.*1 MiB/)).toBeVisible();
    await expect(page.getByLabel("Name", { exact: true })).toHaveValue("large");
    await expect(page.getByRole("button", { name: "Launch" })).toBeDisabled();
  }
});
