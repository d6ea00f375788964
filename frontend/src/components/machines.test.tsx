import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { QueueTable } from "@/components/QueueTable";
import { deviceBlocks, hostBlocks } from "@/lib/packing";
import { PackingMap } from "@/plots/PackingMap";
import { draw } from "@/test/draw";
import { device, host, lease, queued, suspectLease } from "@/test/factories/host";
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
  });
});

describe("QueueTable", () => {
  it("says why each waits, and what is put off", async () => {
    const rows = [
      queued({ waiting: [rejection(), rejection()] }),
      queued({ attempt_id: "q2", position: 2, not_before: "2026-01-01T00:03:00Z" }),
      queued({ attempt_id: "q3", position: 3, sweep_state: "paused" }),
      queued({ attempt_id: "q4", position: 4 }),
    ];
    await draw(<QueueTable rows={rows} total={40} now={now} />);
    expect(screen.getAllByText("box has too little memory free")).toHaveLength(1);
    expect(screen.getByText("It is put off for 1 min.")).toBeTruthy();
    expect(screen.getByText("Its sweep is paused.")).toBeTruthy();
    expect(screen.getByText("The placer has not looked at it yet.")).toBeTruthy();
    expect(screen.getByText(/40 attempts wait, the first 4 are shown/)).toBeTruthy();
  });

  it("says when nothing waits", async () => {
    await draw(<QueueTable rows={[]} total={0} now={now} />);
    expect(screen.getByText("Nothing waits for a place.")).toBeTruthy();
  });
});
