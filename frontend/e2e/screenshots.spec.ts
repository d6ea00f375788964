import { mkdirSync, statSync } from "node:fs";
import { list, minute, small, submit, type Sweep, type Trial } from "./berth";
import { expect, test } from "./watched";

// Not a test: makes the pictures of docs/web.md. SCREENSHOTS=1 scripts/test-web
// runs it once the example has ended.
test.skip(process.env.SCREENSHOTS === undefined, "pictures are made on request");

const out = process.env.SCREENSHOTS_DIR ?? "../docs/images";
const largest = 120 * 1024; // bytes of a picture

// height is the most that a picture has; a shorter page makes a shorter picture.
const sizes = [
  { name: "1440", width: 1440, height: 850 },
  { name: "390", width: 390, height: 1300 },
];
const heights: Record<string, number> = { sweep: 1260, new: 540 }; // at 1440: its charts, and small enough

test("pictures of every page", async ({ watched: page, request }) => {
  test.setTimeout(10 * minute);
  mkdirSync(out, { recursive: true });
  const [example] = await list<Sweep>(request, "/sweeps?name=digits-transfer&state=succeeded");
  const sweep = `/sweeps/${example?.id ?? ""}`;
  const [best] = await list<Trial>(request, `${sweep}/trials?sort=-value`);
  const other = await submit(request, small("small"));
  // So that machines are shown with running trials.
  await submit(request, long);
  const held = async () =>
    (await list<{ sweep_name: string; attempt_state: string }>(request, "/leases")).filter(
      (one) => one.sweep_name === "long" && one.attempt_state === "running",
    ).length;
  await expect.poll(held, { timeout: 2 * minute }).toBeGreaterThan(5);

  const compared = encodeURIComponent(JSON.stringify([example?.id, other]));
  const pages: [string, string, RegExp][] = [
    ["machines", "/machines", /What waits, and why/],
    ["sweeps", "/sweeps", /digits-transfer/],
    ["sweep", sweep, /Where and when/],
    ["trials", `${sweep}?tab=trials&sort=-value`, /\(best\)/],
    ["report", `${sweep}?tab=report`, /Machine time in use/],
    ["trial", `${sweep}/trials/${best?.number ?? 0}`, /shown, complete/],
    ["new", "/sweeps/new?from=example", /The file is valid/],
    ["probes", "/probes", /a whole run/],
    ["probe", `/probes/${best?.shape_key ?? ""}`, /Margin over the peak/],
    ["compare", `/compare?ids=${compared}`, /Best so far/],
    ["health", "/health", /database/],
    ["settings", "/settings", /Temporal namespace/],
  ];
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const size of sizes) {
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const [name, path, ready] of pages) {
        await page.setViewportSize({ width: size.width, height: 600 });
        await page.goto(path);
        const main = page.getByRole("main");
        await expect(main).toContainText(ready);
        await expect(main).not.toContainText("Reading ");
        // All charts are drawn: a chart is drawn as it comes into view, and the picture is as high as the page.
        for (const chart of await main.locator("canvas").all()) await expect(chart).toBeVisible();
        const { bottom } = await main.evaluate((element) => element.getBoundingClientRect().toJSON() as DOMRect);
        const most = size.width > 400 ? (heights[name] ?? size.height) : size.height;
        await page.setViewportSize({ width: size.width, height: Math.min(most, Math.max(400, Math.ceil(bottom))) });
        await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
        const file = `${out}/web-${name}-${scheme}-${size.name}.png`;
        await page.screenshot({ path: file, animations: "disabled" });
        expect.soft(statSync(file).size, file).toBeLessThanOrEqual(largest);
      }
    }
  }
});

const long = `name: long
image: berth-test/busy:1
command: [/busy, train, "900000", "0.5", "{{mib}}"]
parameters:
  - {name: mib, values: [100, 300, 700], memory: true}
  - {name: seed, values: [1, 2, 3, 4]}
environment_variables: {SEED: "{{seed}}"}
search: {algorithm: grid}
objective: {metric: val}
resources: {device: cpu, cpus: 0.2, memory: 1GiB}
probe: {mode: "off"}
metrics: {source: stdout}
`;
