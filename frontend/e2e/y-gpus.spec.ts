import { expectState, get, list, minute, submit, type Device, type Host, type Sweep, type Trial } from "./berth";
import { expect, expectAccessible, test } from "./watched";
import { aWorker } from "./worker";

// A second machine with a simulated GPU (docs/gpus.md): a worker beside that of `berth dev`. It begins when
// the other files are done, for their sweeps would take the GPU.
test.describe.configure({ mode: "serial" });

const host = `cards-${process.pid}`;
const worker = aWorker(host, {
  memory: "2GiB",
  "fake-gpus": "1x2GiB",
  waits: "heartbeat=10s",
});

/** simulated is a sweep of a program that behaves on a simulated GPU as TensorFlow does on a real one. */
function simulated(name: string, mib: string, steps: number): string {
  return `name: ${name}
image: berth-test/busy:1
command: [/busy, gpu, --mib, "{{mib}}", --steps, "${steps}", --cpu, 0s, --gpu, 50ms, --retry, 0s]
parameters: [{name: mib, values: ${mib}, memory: true}]
search: {algorithm: grid}
objective: {metric: val}
resources: {device: gpu, cpus: 0.1, memory: 64MiB}
metrics: {source: stdout}
`;
}

test("a machine with a GPU appears by itself, and says that its card is simulated", async ({
  watched: page,
  request,
}) => {
  await page.goto("/machines");
  const card = page.getByRole("region", { name: host, exact: true });
  await expect(card).toContainText("Ready", { timeout: minute });
  await expect(card).toContainText("Simulated GPU 2 GiB (no real card; see docs/gpus.md)");
  await expect(card).toContainText("Shared by: time slices");
  await expect(card.getByRole("img", { name: /^Memory of Simulated GPU 2 GiB, 2,048 MiB: .*free/ })).toBeVisible();
  expect((await theCard(request)).mode).toBe("time_slicing");
  await expectAccessible(page);
});

async function theCard(request: Parameters<typeof list>[0]): Promise<Device> {
  const [device] = (await list<Host>(request, "/hosts")).find((one) => one.name === host)?.devices ?? [];
  expect(device).toBeDefined();

  return device as Device;
}

test("a trial is drawn on its GPU, and one that ran out of its memory says so", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  const id = await submit(request, simulated("simulated", "[100, 3000]", 100));
  await page.goto("/machines");
  const card = page.getByRole("region", { name: host, exact: true });
  await expect(card.getByRole("link", { name: /^Trial 1 of simulated, .* running/ }).first()).toBeVisible({
    timeout: minute,
  });
  await expect(card).toContainText(/1 attempt now/);

  await expectState(request, id, "succeeded");
  const trials = await list<Trial>(request, `/sweeps/${id}/trials`);
  expect(trials.map((trial) => trial.state)).toEqual(["succeeded", "infeasible"]);
  await page.goto(`/sweeps/${id}/trials/2`);
  const main = page.getByRole("main");
  await expect(main).toContainText("Needs too much memory");
  await expect(main).toContainText("Out of memory on its GPU");
  await expect(main).toContainText("ran out of GPU memory, with 1,024 MiB reserved");
  const attempts = await list<{ failure_kind: string }>(request, `/sweeps/${id}/trials/2/attempts`);
  expect(new Set(attempts.map((one) => one.failure_kind))).toEqual(new Set(["device_oom"]));
  await expect(page.getByRole("img", { name: /^GPU memory: / }).first()).toBeVisible();
  await expectAccessible(page);
});

test("a cordoned GPU takes no trials, and says why, until it is uncordoned", async ({ watched: page, request }) => {
  test.setTimeout(3 * minute);
  await page.goto("/machines");
  const card = page.getByRole("region", { name: host, exact: true });
  await card.getByRole("button", { name: /^Cordon / }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("its fan is loud");
  await page.getByRole("dialog").getByRole("button", { name: "Cordon" }).click();
  await expect(card).toContainText(/It takes no new trials, since .*\. its fan is loud/);
  expect((await theCard(request)).cordon_reason).toBe("its fan is loud");

  const id = await submit(request, simulated("waits for a GPU", "[100]", 10));
  const waits = page.getByRole("table", { name: "What waits" }).getByRole("row", { name: /of waits for a GPU/ });
  await expect(waits).toContainText("its fan is loud", { timeout: minute });
  expect((await get<Sweep>(request, `/sweeps/${id}`)).counts.succeeded).toBe(0);

  await card.getByRole("button", { name: /^Uncordon/ }).click();
  await expect(card).not.toContainText("its fan is loud");
  expect((await theCard(request)).cordoned_at).toBeUndefined();
  await expectState(request, id, "succeeded");
});

test(
  "a machine whose worker is gone says so, and can be removed",
  { tag: "@nightly" },
  async ({ watched: page, request }) => {
    test.setTimeout(5 * minute);
    await page.goto("/machines");
    const card = page.getByRole("region", { name: host, exact: true });
    await expect(card).toContainText("Ready");
    worker.signal("SIGKILL");
    await expect(card).toContainText("Lost: its worker does not answer", { timeout: 3 * minute });
    await card.getByRole("button", { name: /^Remove / }).click();
    await expect(page.getByRole("dialog")).toContainText("goes with its reservations");
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await expect(card).toHaveCount(0);
    expect((await list<Host>(request, "/hosts")).map((one) => one.name)).not.toContain(host);
  },
);
