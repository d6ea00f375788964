import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test as base, type BrowserContext, type Page } from "@playwright/test";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  violations: { id: string; impact: string | null; nodes: { html: string; any: { message: string }[] }[] }[];
}

/** watch collects forbidden actions of a page: leaving the origin, violating the policy, or a script error. */
export function watch(context: BrowserContext, origin: string): string[] {
  const wrong: string[] = [];
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (/^(http|ws)/.test(url.protocol) && url.origin !== origin) wrong.push(`request to ${request.url()}`);
  });
  context.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) wrong.push(message.text());
  });
  context.on("weberror", (error) => wrong.push(`error in the page: ${error.error().message}`));

  return wrong;
}

/** Each test of it fails when one of its pages did something forbidden. */
export const test = base.extend<{ watched: Page; guard: undefined }>({
  guard: [
    async ({ context, baseURL }, run) => {
      const wrong = watch(context, new URL(baseURL ?? "").origin);
      await run(undefined);
      expect(wrong).toEqual([]);
    },
    { auto: true },
  ],
  watched: async ({ page }, run) => run(page),
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
    .map(
      (found) =>
        `${found.id}: ${found.nodes.map((node) => `${node.html.slice(0, 200)} (${node.any[0]?.message ?? ""})`).join(" | ")}`,
    );
  expect(serious).toEqual([]);
}

/** clicks counts the presses of a person on a page, over all its documents. Fields count once each; see fields. */
export async function clicks(page: Page): Promise<() => Promise<number>> {
  let pressed = 0;
  await page.exposeFunction("berthPressed", () => pressed++);
  await page.addInitScript(() => {
    const { berthPressed } = window as unknown as { berthPressed: () => void };
    document.addEventListener("click", (event) => event.isTrusted && berthPressed(), true);
  });

  return async () => {
    await page.evaluate(() => undefined); // earlier messages have arrived

    return pressed;
  };
}

/** moving counts the running animations of a page that will end. */
function moving(): number {
  return document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime)).length;
}

/** expectAccessibleInBoth looks in the light and in the dark. */
export async function expectAccessibleInBoth(page: Page): Promise<void> {
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await expect(page.locator("html")).toHaveAttribute("data-mantine-color-scheme", colorScheme);
    await expect.poll(() => page.evaluate(moving), { message: "colours that still change" }).toBe(0);
    await expectAccessible(page);
  }
}

/** fields counts the fields that a person has changed, each once. */
export async function fields(page: Page): Promise<() => Promise<number>> {
  const changed = new Set<string>();
  await page.exposeFunction("berthChanged", (name: string) => changed.add(name));
  await page.addInitScript(() => {
    const { berthChanged } = window as unknown as { berthChanged: (name: string) => void };
    document.addEventListener(
      "input",
      ({ target }) => {
        if (!(target instanceof HTMLElement)) return;
        if (target.id === "") throw new Error("a field without an id cannot be counted");
        berthChanged(target.id);
      },
      true,
    );
  });

  return async () => {
    await page.evaluate(() => undefined);

    return changed.size;
  };
}

export { expect };
