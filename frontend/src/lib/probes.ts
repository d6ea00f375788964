import { bytes, percent, value } from "@/lib/format";
import type { Device } from "@/services/hosts";
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

/** programText tells the shapes of two programs apart: the beginning of the image's digest, and the command. */
export function programText({ shape }: Probe): string {
  return `${shape.image_digest.replace("sha256:", "").slice(0, 8)} ${shape.command.join(" ")}`;
}

/** margin is the part of a reservation above the measured peak. */
export function margin(reserved: number, peak: number): string {
  return peak === 0 ? "–" : `${bytes(reserved - peak)} (${percent((reserved - peak) / peak)})`;
}

/** Memory of a GPU as one bar of several, on the scale of the whole card. */
export interface GpuBar {
  name: string;
  bytes: number;
  measured: boolean;
}

/** gpuOf is a GPU of the kind that a footprint is of, however its trials share it now. */
export function gpuOf(footprint: Footprint, gpus: Device[]): Device | undefined {
  const kind = (name: string) => name.replace(/ \(MPS\)$/, "");

  return gpus.find((gpu) => kind(gpu.class) === kind(footprint.device_class));
}

/** gpuBars set the measurements beside TensorFlow's default mode, as far as each is known. */
export function gpuBars(
  { device_peak_bytes: peak = 0, device_reserved_bytes: reserved = 0 }: Footprint,
  gpu?: Device,
): GpuBar[] {
  return [
    { name: "TensorFlow's default mode", bytes: gpu?.default_mode_bytes ?? 0, measured: false },
    { name: "Next attempt reserves", bytes: reserved, measured: false },
    { name: "Peak", bytes: peak, measured: true },
  ].filter((bar) => bar.bytes > 0);
}

const sources: Record<string, string> = {
  full: "a whole run",
  short: "a short run",
  partial: "a part of a run",
  raised: "raised after out of memory",
  predicted: "predicted from shapes that differ in numbers",
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
