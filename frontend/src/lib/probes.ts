import { bytes, percent, value } from "@/lib/format";
import type { Footprint, Probe } from "@/services/probes";

/** One footprint with its shape: a shape has one for each class of device. */
export interface ProbeLine {
  key: string;
  probe: Probe;
  footprint: Footprint;
}

export function probeLines(probes: Probe[]): ProbeLine[] {
  return probes.flatMap((probe) =>
    probe.footprints.map((footprint) => ({ key: `${probe.shape_key}/${footprint.device_class}`, probe, footprint })),
  );
}

/** valuesText names a shape by its values, or by its command when none counts. */
export function valuesText(probe: Probe): string {
  const values = Object.entries(probe.shape.values);

  return values.length > 0
    ? values.map(([name, v]) => `${name}=${value(v)}`).join(", ")
    : probe.shape.command.join(" ");
}

/** margin is what a reservation has over the measured peak. */
export function margin(footprint: Footprint): string {
  const over = footprint.reserved_bytes - footprint.memory_peak_bytes;
  if (footprint.memory_peak_bytes === 0) return "–";

  return `${bytes(over)} (${percent(over / footprint.memory_peak_bytes)})`;
}

const sources: Record<string, string> = {
  full: "a whole run",
  short: "a short run",
  partial: "a part of a run",
  raised: "raised after out of memory",
};

export function sourceText(source: string): string {
  return sources[source] ?? source;
}

const labels: Record<string, string> = {
  compute_bound: "Limited by computation",
  memory_bound: "Limited by the GPU's memory bandwidth",
  input_bound: "Limited by its input",
  latency_bound: "Limited by latency: many small steps",
};

export function labelText(label: string | undefined): string {
  return label === undefined ? "What limits it is not known" : (labels[label] ?? label.replaceAll("_", " "));
}
