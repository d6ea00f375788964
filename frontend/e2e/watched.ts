import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test as base, type Page } from "@playwright/test";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] }[];
}

/** A page that fails its test when a request leaves the origin, the policy is violated, or a script fails. */
export const test = base.extend<{ watched: Page }>({
  watched: async ({ page, baseURL }, run) => {
    const wrong: string[] = [];
    const origin = new URL(baseURL ?? "").origin;
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && url.origin !== origin) wrong.push(`request to ${request.url()}`);
    });
    page.on("console", (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) wrong.push(message.text());
    });
    page.on("pageerror", (error) => wrong.push(`error in the page: ${error.message}`));
    await run(page);
    expect(wrong).toEqual([]);
  },
});

/** expectAccessible fails on each serious or critical finding of axe. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axeSource);
  const result = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: () => Promise<AxeResult> } };

    return axe.run();
  });
  const serious = result.violations
    .filter((found) => found.impact === "serious" || found.impact === "critical")
    .map((found) => `${found.id}: ${found.nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
  expect(serious).toEqual([]);
}

export { expect };
