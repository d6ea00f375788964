import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Report } from "@/components/Report";
import { drawApp, local, type Answers } from "@/test/app";
import { draw } from "@/test/draw";
import { device, host, lease, simulatedDevice, suspectLease } from "@/test/factories/host";
import { emptyReport, endedSweep, report, sweep } from "@/test/factories/sweep";
import { simulatedFootprint, outOfMemoryFootprint, probe } from "@/test/factories/probe";

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

const refused: [number, unknown] = [400, { detail: "Not now." }];
const nothing: [number, unknown] = [200, { data: [], total: 0 }];

describe.each([
  ["/health", "GET /healthz", "Reading the health", /^The health of each part|health of each part/],
  ["/probes", "GET /probes", "Reading probes", /probes/],
  ["/probes/abc", "GET /probes/abc", "Reading the probe", /the probe/],
  ["/machines", "GET /hosts", "Reading machines", /machines/],
  ["/compare?ids=%5B%22a%22%2C%22b%22%5D", "GET /sweeps/a", "Reading a sweep", /the sweeps/],
])("%s", (path, call, doing, loading) => {
  it("says what it reads", async () => {
    await drawApp(path, { [call]: "never" });
    expect(
      (await screen.findByText((text) => text.startsWith("Reading ") && loading.test(text))).textContent,
    ).toBeTruthy();
  });

  it("says what failed, and reads again when asked", async () => {
    const answers: Answers = { [call]: refused, "GET /sweeps/b": refused };
    const { asked } = await drawApp(path, answers);
    const note = (await screen.findByText(`${doing} failed.`)).parentElement as HTMLElement;
    expect(note.textContent).toContain("Not now.");
    const before = asked.filter((one) => one.call === call).length;
    await userEvent.click(within(note).getByRole("button", { name: "Try again" }));
    await vi.waitFor(() => expect(asked.filter((one) => one.call === call).length).toBeGreaterThan(before));
  });
});

describe("HealthPage", () => {
  const good = { part: "database", ok: true, what: "answers" };
  it.each([
    [true, good, "Every part works."],
    [true, { ...good, warn: true }, "Every part works. Some will not before long."],
    [false, { ...good, ok: false }, "Something is wrong. The table says what, and what to do."],
  ])("sums up: ok %s", async (ok, finding, text) => {
    await drawApp("/health", { "GET /healthz": [ok ? 200 : 503, { ok, findings: [finding] }] });
    expect(await screen.findByText(text)).toBeTruthy();
  });
});

describe("ProbesPage", () => {
  it("says where measurements come from when there are none", async () => {
    await drawApp("/probes", { "GET /probes": nothing });
    expect(await screen.findByText(/Nothing was measured yet/)).toBeTruthy();
  });
});

describe("ProbePage", () => {
  const path = `/probes/${probe().shape_key}`;

  it("says that a shape was not measured", async () => {
    await drawApp(path, {});
    expect(await screen.findByRole("heading", { name: "Nothing was measured of this shape" })).toBeTruthy();
  });

  it("shows a GPU's peak, and where it ran out of memory", async () => {
    await drawApp(path, {
      [`GET ${path}`]: [200, probe({ footprints: [simulatedFootprint(), outOfMemoryFootprint()] })],
    });
    expect(await screen.findByRole("heading", { name: "On Simulated GPU 24 GiB" })).toBeTruthy();
    expect(screen.getByText("Floor: this ran out of memory")).toBeTruthy();
    expect(screen.getByText(/raised after out of memory/)).toBeTruthy();
  });

  it("keeps the probe when forgetting fails, and says why", async () => {
    const { router } = await drawApp(path, { [`GET ${path}`]: [200, probe()], [`DELETE ${path}`]: refused });
    await userEvent.click(await screen.findByRole("button", { name: "Forget…" }));
    await userEvent.click(await screen.findByRole("button", { name: "Forget" }));
    expect(await screen.findByText(/Not now/)).toBeTruthy();
    expect(router.state.location.pathname).toBe(path);
  });

  it("does not offer it to a viewer", async () => {
    await drawApp(path, { [`GET ${path}`]: [200, probe()], "GET /me": [200, { ...local, role: "viewer" }] });
    expect(await screen.findByText(/Ask an operator to forget it/)).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Forget…" })).toBeNull();
  });
});

describe("MachinesPage", () => {
  const machines = (...hosts: unknown[]): Answers => ({
    "GET /hosts": [200, { data: hosts }],
    "GET /leases": [200, { data: [lease(), suspectLease()] }],
    "GET /queue": nothing,
  });

  it("says how a machine comes when there is none", async () => {
    await drawApp("/machines", machines());
    expect(await screen.findByText(/No machine is known/)).toBeTruthy();
  });

  it("says that a GPU is simulated, and that a worker is silent", async () => {
    await drawApp("/machines", machines(host({ devices: [simulatedDevice(), device()] })));
    const card = await screen.findByRole("region", { name: "box" });
    expect(within(card).getAllByText(/no real card; see docs\/gpus.md/)).toHaveLength(1);
    expect(within(card).getByRole("link", { name: /^Trial 4 of digits, .* its worker is silent/ })).toBeTruthy();
  });

  it("offers to remove a lost machine alone, and says why that failed", async () => {
    await drawApp("/machines", { ...machines(host({ state: "lost" })), "DELETE /hosts/h1": refused });
    const card = await screen.findByRole("region", { name: "box" });
    expect(within(card).getByText("Lost: its worker does not answer")).toBeTruthy();
    expect(within(card).queryByRole("button", { name: /^Drain / })).toBeNull();
    await userEvent.click(within(card).getByRole("button", { name: /^Remove / }));
    await userEvent.click(await screen.findByRole("button", { name: "Remove" }));
    expect(await screen.findByText(/Not now/)).toBeTruthy();
  });

  it("sends the reason of a cordon", async () => {
    const { asked } = await drawApp("/machines", {
      ...machines(host({ devices: [device()] })),
      "PATCH /devices/GPU-1": [200, device()],
    });
    await userEvent.click(await screen.findByRole("button", { name: /^Cordon / }));
    await userEvent.type(await screen.findByLabelText("Reason"), " loud ");
    await userEvent.click(screen.getByRole("button", { name: "Cordon" }));
    await vi.waitFor(() => expect(asked.some((one) => one.call === "PATCH /devices/GPU-1")).toBe(true));
    expect(JSON.parse(asked.find((one) => one.call === "PATCH /devices/GPU-1")?.body ?? "")).toEqual({
      state: "cordoned",
      reason: "loud",
    });
  });

  it("keeps the machines when what holds them cannot be read", async () => {
    await drawApp("/machines", { ...machines(host()), "GET /leases": refused, "GET /queue": refused });
    expect(await screen.findByText("Reading what holds the machines failed.")).toBeTruthy();
    expect(await screen.findByText("Reading the queue failed.")).toBeTruthy();
    expect(screen.getByRole("region", { name: "box" })).toBeTruthy();
  });
});

describe("SettingsPage", () => {
  it("pauses and resumes what is live, and says who one is", async () => {
    await drawApp("/settings", { "GET /me": [200, { name: "eva", role: "operator", known_by: "session" }] });
    const you = await screen.findByRole("region", { name: "You" });
    expect(you.textContent).toContain("eva");
    expect(screen.queryByRole("region", { name: "Tokens" })).toBeNull(); // an administrator's
    await userEvent.click(screen.getByLabelText(/^Live updates/));
    expect(screen.getByRole("status").textContent).toBe("Paused");
    await userEvent.click(screen.getByLabelText(/^Live updates/));
    expect(screen.getByRole("status").textContent).not.toBe("Paused");
  });
});

describe("Report", () => {
  it("says that nothing has started", async () => {
    await draw(<Report report={emptyReport()} />);
    expect(screen.getByText(/No attempt has started yet/)).toBeTruthy();
  });

  it("says what is missing, what was lost, and that a sweep goes on", async () => {
    const losses = [{ cause: "host_oom", attempts: 3, repeated: 3, seconds: 60 }] as ReturnType<
      typeof report
    >["losses"];
    await draw(<Report report={report({ ended: false, missing_trials: 2, losses })} />);
    expect(screen.getByText(/The sweep goes on/)).toBeTruthy();
    expect(screen.getByText(/What 2 trials used is not in the database/)).toBeTruthy();
    expect(screen.getByRole("region", { name: "Attempts without a result" }).textContent).toContain("memory");
  });

  it("says that nothing was lost", async () => {
    await draw(<Report report={report()} />);
    expect(screen.getByText("No attempt was lost: each gave a result.")).toBeTruthy();
  });
});

describe("ComparePage", () => {
  it("says how to choose", async () => {
    await drawApp("/compare", {});
    expect(await screen.findByText(/Choose two sweeps or more/)).toBeTruthy();
  });

  it("says that files are equal, and that metrics differ", async () => {
    const one = sweep({ id: "a", name: "one", spec: { version: 1 } });
    const two = sweep({
      id: "b",
      name: "two",
      spec: { version: 1 },
      objective: { metric: "loss", goal: "minimize" },
    } as never);
    await drawApp("/compare?ids=%5B%22a%22%2C%22b%22%5D", {
      "GET /sweeps/a": [200, one],
      "GET /sweeps/b": [200, two],
      "GET /sweeps/a/trials": nothing,
      "GET /sweeps/b/trials": refused,
    });
    expect(await screen.findByText("The files are equal.")).toBeTruthy();
    expect(await screen.findByText("They have different metrics: val_accuracy, loss.", { exact: false })).toBeTruthy();
    expect(await screen.findByText("Reading trials failed.")).toBeTruthy();
  });
});

describe("BulkActions", () => {
  const runs = sweep({ id: "a", name: "runs" });
  const ended = endedSweep("succeeded", { id: "b", name: "ended" });
  const stuck = sweep({ id: "c", name: "stuck" });

  it("tells of each chosen sweep what became of it", async () => {
    const { asked } = await drawApp("/sweeps", {
      "GET /sweeps": [200, { data: [runs, ended, stuck], total: 3 }],
      "POST /sweeps/a/pause": [200, runs],
      "POST /sweeps/c/pause": [409, { detail: "It is busy." }],
    });
    for (const name of ["runs", "ended", "stuck"])
      await userEvent.click(await screen.findByRole("checkbox", { name: `Choose ${name}` }));
    const group = screen.getByRole("group", { name: "With the chosen sweeps" });
    await userEvent.click(within(group).getByRole("button", { name: "Pause" }));
    expect(await screen.findByText("runs: paused")).toBeTruthy();
    expect(screen.getByText("ended: left as it is: it is succeeded")).toBeTruthy();
    expect(screen.getByText("stuck: It is busy.")).toBeTruthy();
    expect(asked.map((one) => one.call)).not.toContain("POST /sweeps/b/pause");
  });

  it("asks before it cancels, and compares two or more", async () => {
    const { asked } = await drawApp("/sweeps", { "GET /sweeps": [200, { data: [runs], total: 1 }] });
    await userEvent.click(await screen.findByRole("checkbox", { name: "Choose runs" }));
    expect(screen.getByRole("button", { name: "Compare" }).hasAttribute("disabled")).toBe(true);
    await userEvent.click(screen.getByRole("button", { name: "Cancel…" }));
    expect(await screen.findByText("Cancel 1 sweep?")).toBeTruthy();
    expect(asked.map((one) => one.call)).not.toContain("POST /sweeps/a/cancel");
  });
});

describe("ExportTrials", () => {
  const path = `/sweeps/${sweep().id}`;

  it("is of the trials that the list shows", async () => {
    await drawApp(`${path}?tab=trials&state=failed,canceled&min=0.5&sort=-value&stage=0b1`, {
      [`GET ${path}`]: [200, sweep()],
      [`GET ${path}/trials`]: nothing,
    });
    expect(await screen.findByText(/Using stage 0b1/)).toBeTruthy();
    await userEvent.click(await screen.findByRole("button", { name: "Export" }));
    const link = await screen.findByRole("menuitem", { name: "Parquet" });
    expect(link.getAttribute("href")).toMatch(
      new RegExp(`${path}/export\\?format=parquet&state=failed%2Ccanceled&value_min=0.5&stage=0b1$`),
    );
  });
});
