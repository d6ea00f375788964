import type { Footprint, Probe } from "@/services/probes";

const MiB = 1024 ** 2;

/** A shape's footprint on a GPU. */
export function footprint(change: Partial<Footprint> = {}): Footprint {
  return {
    device_class: "NVIDIA H200 (MPS)",
    source: "full",
    samples: 6,
    memory_peak_bytes: 1000 * MiB,
    reserved_bytes: 1100 * MiB,
    device_peak_bytes: 910 * MiB,
    device_reserved_bytes: 1088 * MiB,
    device_activity: { sm_milli: 70, dram_milli: 0, tensor_milli: 0 },
    cpu_milli: 1000,
    duration_seconds: 60,
    measured_at: "2026-01-01T00:00:00Z",
    ...change,
  };
}

export function coresFootprint(): Footprint {
  return footprint({ device_class: "cpu", device_peak_bytes: undefined, device_reserved_bytes: undefined });
}

/** An out-of-memory is all that is known: nothing was measured. */
export function raisedFootprint(): Footprint {
  return footprint({
    source: "raised",
    samples: 0,
    memory_peak_bytes: 0,
    reserved_bytes: 0,
    cpu_milli: 0,
    duration_seconds: 0,
    device_peak_bytes: undefined,
    device_reserved_bytes: 2560 * MiB,
  });
}

/** outOfMemoryFootprint is of a shape that ran out of memory and was raised. */
export function outOfMemoryFootprint(): Footprint {
  return { ...coresFootprint(), source: "raised", memory_floor_bytes: 900 * MiB };
}

export function simulatedFootprint(): Footprint {
  return footprint({ device_class: "Simulated GPU 24 GiB", device_peak_bytes: 1500 * MiB });
}

export function probe(change: Partial<Probe> = {}): Probe {
  return {
    shape_key: "0123456789abcdef",
    shape: {
      image_digest: "sha256:abc",
      command: ["python3", "train.py"],
      values: { batch: 32 },
      cpu_milli: 1000,
      device: "cpu",
    } as unknown as Probe["shape"],
    footprints: [coresFootprint()],
    ...change,
  };
}
