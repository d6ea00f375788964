import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { HostCard } from "@/components/HostCard";
import { QueueTable } from "@/components/QueueTable";
import { deviceBlocks, hostBlocks } from "@/lib/packing";
import { PackingMap } from "@/plots/PackingMap";
import { draw } from "@/test/draw";
import { cordonedDevice, device, host, keptHost, lease, queued, suspectLease } from "@/test/factories/host";
import { rejection } from "@/test/factories/trial";

const now = Date.parse("2026-01-01T00:02:00Z");
const GiB = 1024 ** 3;

describe("packing map", () => {
  it("draws each lease as wide as its part of the memory", () => {
    const big = lease({ attempt_id: "b", demand: { memory_bytes: 32 * GiB, cpu_milli: 1 } });
    const list = hostBlocks(host(), [lease(), big, lease({ host_id: "other" })]);
    expect(list.map((block) => [block.lease.attempt_id, block.from, block.share])).toEqual([
      ["b", 0, 0.5],
      ["a1", 0.5, 0.25],
    ]);
  });

  it("stays within the memory, and keeps to the attempts of its GPU", () => {
    const on = (id: string) =>
      lease({ attempt_id: id, device_id: "GPU-1", demand: { memory_bytes: 1, cpu_milli: 1, device_bytes: 140 * GiB } });
    expect(deviceBlocks(device(), [on("a"), on("b"), lease()]).map((block) => block.share)).toEqual([0.5, 0.5]);
  });

  it("links to trials, and says when a worker is silent", async () => {
    await draw(<PackingMap label="Attempts on box" blocks={hostBlocks(host(), [lease(), suspectLease()])} now={now} />);
    expect(screen.getByRole("link", { name: "Trial 3 of digits, 16 GiB, running" }).getAttribute("href")).toBe(
      "/sweeps/s1/trials/3",
    );
    expect(screen.getByRole("link", { name: /^Trial 4 of digits, 16 GiB, its worker is silent/ })).toBeTruthy();
    for (const block of screen.getAllByRole("link", { name: /^Trial . of/ })) expect(block.tabIndex).toBe(-1);
  });
});

describe("HostCard", () => {
  const card = (change: Parameters<typeof host>[0]) =>
    draw(<HostCard host={host(change)} leases={[]} now={now} onHost={() => {}} onDevice={() => {}} />);

  it.each([
    ["lost", "Its machine is lost"],
    ["draining", "Its machine drains"],
    ["unready", "Its machine is not ready"],
  ] as const)("does not call a GPU ready whose machine is %s", async (state, text) => {
    await card({ state, devices: [device(), { ...cordonedDevice(), id: "GPU-2" }] });
    expect(screen.getByText(text)).toBeTruthy();
    expect(screen.getByText("Cordoned")).toBeTruthy();
    expect(screen.queryByText("Ready")).toBeNull();
  });

  it("says that a machine keeps away one sweep alone, and links to it", async () => {
    await card({ cordoned_at: "2026-01-01T00:00:00Z", cordon_reason: "no image", cordon_sweep: "0190aaaa-0000-7000" });
    expect(screen.queryByText("Cordoned: takes only test attempts")).toBeNull();
    expect(screen.getByText("Ready, but not for one sweep")).toBeTruthy();
    expect(screen.getByRole("link", { name: "sweep 0190aaaa-0000" }).getAttribute("href")).toBe(
      "/sweeps/0190aaaa-0000-7000",
    );
  });

  it("takes the API's word for what is simulated, not the model", async () => {
    await card({ devices: [device({ simulated: true })] });
    expect(screen.getByText(/no real card/)).toBeTruthy();
  });
});

describe("QueueTable", () => {
  it("says why each waits, and what is put off", async () => {
    const rows = [
      queued({ waiting: [rejection(), rejection()] }),
      queued({ attempt_id: "q2", position: 2, not_before: "2026-01-01T00:03:00Z" }),
      queued({ attempt_id: "q3", position: 3, sweep_state: "paused" }),
      queued({ attempt_id: "q4", position: 4 }),
      queued({ attempt_id: "q5", position: 5, sweep_state: "pending" }),
    ];
    await draw(<QueueTable rows={rows} total={40} now={now} />);
    expect(screen.getAllByText("box has too little memory free")).toHaveLength(1);
    expect(screen.getByText("It is put off for 1 min.")).toBeTruthy();
    expect(screen.getByText("Its sweep is paused.")).toBeTruthy();
    expect(screen.queryByText("Its sweep is pending.")).toBeNull(); // it has trials placed
    expect(screen.getAllByText("The placer has not looked at it yet.")).toHaveLength(2);
    expect(screen.getByText(/40 attempts wait, the first 5 are shown/)).toBeTruthy();
  });

  it("says which host or GPU is kept free for one, and since when", async () => {
    const rows = [
      queued({ kept_host: keptHost() }),
      queued({ attempt_id: "q2", position: 2, kept_host: keptHost({ name: "lab", device_id: "GPU-1" }) }),
      queued({ attempt_id: "q3", position: 3 }),
    ];
    await draw(<QueueTable rows={rows} total={3} now={now} />);
    const kept = screen.getAllByText(/is kept free for it/).map((item) => item.textContent);
    expect(kept).toHaveLength(2);
    expect(kept[0]).toMatch(
      /^Host box is kept free for it since .*20\d\d.*: nothing younger starts there until it fits, or its turn is over\.$/,
    );
    expect(kept[1]).toMatch(/^GPU GPU-1 of host lab is kept free for it since /);
    expect(document.querySelector("time[datetime='2026-01-01T00:01:00Z']")).toBeTruthy();
  });

  it("says when the trial that blocks each should end", async () => {
    const rows = [
      queued({ blocker_ends_at: "2026-01-01T00:03:30Z" }),
      queued({ attempt_id: "q2", position: 2, blocker_ends_at: "2026-01-01T00:01:59Z" }), // it takes longer than others
      queued({ attempt_id: "q3", position: 3 }),
    ];
    await draw(<QueueTable rows={rows} total={3} now={now} />);
    const [, ...lines] = screen.getAllByRole("row");
    const cells = lines.map((line) => within(line).getAllByRole("cell")[3]?.textContent);
    expect(screen.getAllByRole("columnheader")[3]?.textContent).toBe("Blocker ends");
    expect(cells).toEqual(["In 1 min 30 s", "Any moment", "Unknown"]);
  });

  it("says when nothing waits", async () => {
    await draw(<QueueTable rows={[]} total={0} now={now} />);
    expect(screen.getByText("Nothing waits for a place.")).toBeTruthy();
  });
});
