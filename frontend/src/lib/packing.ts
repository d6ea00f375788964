import { bytes, percent } from "@/lib/format";
import type { Device, Host } from "@/services/hosts";

export interface Part {
  name: "reserved" | "used by others" | "headroom" | "free";
  bytes: number;
}

/**
 * parts split a memory into what Berth reserved, what others use, what is kept
 * free on purpose, and what new trials can get. The API's free_bytes is the total
 * less what others use. Others use up the headroom first: that is what it is for
 * (internal/packing takes the smaller of the two limits).
 */
export function parts(total: number, reserved: number, headroom: number, free: number): Part[] {
  const others = Math.min(Math.max(0, total - free), Math.max(0, total - reserved));
  const kept = Math.min(Math.max(0, headroom - others), Math.max(0, total - reserved - others));

  return [
    { name: "reserved" as const, bytes: reserved },
    { name: "used by others" as const, bytes: others },
    { name: "headroom" as const, bytes: kept },
    { name: "free" as const, bytes: Math.max(0, total - reserved - others - kept) },
  ].filter((part) => part.bytes > 0);
}

export function hostParts(host: Host): Part[] {
  return parts(host.memory_bytes, host.memory_reserved_bytes, host.memory_headroom_bytes, host.memory_free_bytes);
}

export function deviceParts(device: Device): Part[] {
  return parts(device.memory_bytes, device.reserved_bytes, device.headroom_bytes, device.free_bytes);
}

/** packingText is the same as a sentence. */
export function packingText(total: number, list: Part[]): string {
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
