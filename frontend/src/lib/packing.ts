import { bytes, percent } from "@/lib/format";
import type { Device, Host, Lease } from "@/services/hosts";
import type { PreviewFill } from "@/services/sweeps";

export interface Part {
  name: "reserved" | "held now" | "this sweep" | "used by others" | "headroom" | "free";
  bytes: number;
  /** drawn is its drawn part of the bar, where that is less: a program outside Berth may use reserved memory. */
  drawn?: number;
}

/**
 * parts split a memory into Berth's reservations, others' use, the headroom, and the part for new
 * trials. Others use up the headroom first: that is its purpose (internal/scheduler/packing takes the smaller of
 * the two limits). Their use of reserved memory is stated, and not drawn.
 */
export function parts(total: number, reserved: number, headroom: number, used: number): Part[] {
  const others = Math.min(used, Math.max(0, total - reserved));
  const kept = Math.min(Math.max(0, headroom - others), Math.max(0, total - reserved - others));

  return [
    { name: "reserved" as const, bytes: reserved },
    { name: "used by others" as const, bytes: used, ...(used > others && { drawn: others }) },
    { name: "headroom" as const, bytes: kept },
    { name: "free" as const, bytes: Math.max(0, total - reserved - others - kept) },
  ].filter((part) => part.bytes > 0);
}

export function hostParts(host: Host): Part[] {
  const { memory_bytes, memory_reserved_bytes, memory_headroom_bytes, used_by_others_bytes = 0 } = host;

  return known(host, parts(memory_bytes, memory_reserved_bytes, memory_headroom_bytes, used_by_others_bytes));
}

export function deviceParts(device: Device): Part[] {
  const { memory_bytes, reserved_bytes, headroom_bytes, used_by_others_bytes = 0 } = device;

  return known(device, parts(memory_bytes, reserved_bytes, headroom_bytes, used_by_others_bytes));
}

/** known leaves out the free memory of a machine or GPU with a problem: others' use there is not measured. */
function known({ problem = "" }: { problem?: string }, list: Part[]): Part[] {
  return problem === "" ? list : list.filter((part) => part.name !== "free");
}

/** previewParts separate a new sweep's reservation from the present ones. */
export function previewParts(fill: PreviewFill): Part[] {
  const { memory_bytes: total = 0, memory_reserved_bytes: reserved = 0, memory_sweep_bytes: sweep = 0 } = fill;
  const rest = parts(total, reserved, fill.memory_headroom_bytes ?? 0, fill.memory_used_by_others_bytes ?? 0).filter(
    (part) => part.name !== "reserved",
  );

  return [
    ...[
      { name: "held now" as const, bytes: reserved - sweep },
      { name: "this sweep" as const, bytes: sweep },
    ].filter((part) => part.bytes > 0),
    ...rest,
  ];
}

/** packingText is the same as a sentence. */
export function packingText(total: number, list: Part[]): string {
  if (list.length === 0) return bytes(total);

  return `${bytes(total)}: ${list.map((part) => `${bytes(part.bytes)} ${part.name} (${percent(part.bytes / total)})`).join(", ")}`;
}

const modes: Record<string, string> = {
  exclusive: "one trial at a time",
  time_slicing: "time slices",
  mps: "MPS",
};

export function modeText(mode: string): string {
  return modes[mode] ?? mode;
}

/** A lease as a part of a memory, drawn from left to right. Shares are of the whole memory. */
export interface Block {
  lease: Lease;
  bytes: number;
  from: number;
  share: number;
}

/** hostBlocks are the leases on a host's memory, the largest first. */
export function hostBlocks(host: Host, leases: Lease[]): Block[] {
  return blocks(
    host.memory_bytes,
    leases.filter((lease) => lease.host_id === host.id),
    (lease) => lease.demand.memory_bytes,
  );
}

/** deviceBlocks are the same of a GPU. */
export function deviceBlocks(device: Device, leases: Lease[]): Block[] {
  return blocks(
    device.memory_bytes,
    leases.filter((lease) => lease.device_id === device.id),
    (lease) => lease.demand.device_bytes ?? 0,
  );
}

/** blocks lie side by side; reservations beyond the memory are drawn within it, each block smaller. */
function blocks(total: number, leases: Lease[], size: (lease: Lease) => number): Block[] {
  const whole = Math.max(
    total,
    leases.reduce((sum, lease) => sum + size(lease), 0),
  );
  let from = 0;

  return leases
    .toSorted((a, b) => size(b) - size(a) || Date.parse(a.since) - Date.parse(b.since))
    .map((lease) => {
      const share = whole === 0 ? 0 : size(lease) / whole;
      const block = { lease, bytes: size(lease), from, share };
      from += share;

      return block;
    });
}
