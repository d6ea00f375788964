import type { Preview, PreviewHost, Sweep, SweepReport, SweepState } from "@/services/sweeps";

const nothing = {
  total: 0,
  planned: 0,
  waiting: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  infeasible: 0,
  canceled: 0,
  pruned: 0,
  oom_retries: 0,
};

export function sweep(change: Partial<Sweep> = {}): Sweep {
  return {
    id: "0190aaaa-0000-7000-8000-000000000001",
    name: "digits",
    image: "berth-examples/digits:1",
    image_digest: "sha256:abc",
    state: "running",
    max_parallel: 0,
    created_by: "ada",
    created_at: "2026-01-01T00:00:00Z",
    started_at: "2026-01-01T00:00:05Z",
    counts: { ...nothing, total: 10, planned: 24, waiting: 4, running: 3, succeeded: 3 },
    objective: { metric: "val_accuracy", goal: "maximize" },
    best: { trial: 2, value: 0.9876 },
    ...change,
  };
}

/** A sweep with two objectives and a constraint. */
export function tradeSweep(change: Partial<Sweep> = {}): Sweep {
  return sweep({
    objective: { metric: "acc", goal: "maximize", further: [{ metric: "ms", goal: "minimize" }] },
    constraints: [{ metric: "ms", max: 20 }],
    best: { trial: 1, value: 0.95 },
    ...change,
  });
}

/** ended is a sweep that has come to its end in a state. */
export function endedSweep(state: SweepState, change: Partial<Sweep> = {}): Sweep {
  return sweep({
    state,
    finished_at: "2026-01-01T00:10:05Z",
    counts: {
      ...nothing,
      total: 24,
      planned: 24,
      succeeded: 20,
      failed: 2,
      infeasible: 1,
      canceled: 1,
      oom_retries: 3,
    },
    ...change,
  });
}

export function newSweep(): Sweep {
  return sweep({ state: "pending", counts: nothing, best: undefined, started_at: undefined });
}

const totals: SweepReport["gpu"] = {
  places: 1, trials: 24, attempts: 25, used_seconds: 100, charged_seconds: 100, attempt_seconds: 480, alone_seconds: 400,
  alone_ran: 4, alone_by_shape: 20, alone_bounded: 0, alone_needless: 1, at_once: 4.8, max_at_once: 6, reserved_byte_seconds: 1e12,
  default_byte_seconds: 0, measured_attempts: 24, peak_bytes: 24e9, peak_reserved_bytes: 30e9, activity_seconds: 0, sm_seconds: 0,
  dram_seconds: 0, tensor_seconds: 0, cpu_seconds: 300, cpu_reserved_seconds: 480,
}; // prettier-ignore

const none: SweepReport["gpu"] = { ...totals, attempts: 0, trials: 0 };

export function report(change: Partial<SweepReport> = {}): SweepReport {
  return {
    sweep_id: "s",
    state: "succeeded",
    ended: true,
    as_of: "2026-01-01T00:10:00Z",
    gpu: none,
    cores: totals,
    places: [],
    losses: [],
    missing_trials: 0,
    notes: ["24 trials took 1 min 40 s of one machine."],
    trials: [],
    ...change,
  };
}

export function emptyReport(): SweepReport {
  return report({ cores: none, ended: false, notes: [] });
}

export function preview(change: Partial<Preview> = {}): Preview {
  return {
    trials: 24,
    enumerated: 24,
    complete: true,
    shapes: [],
    shapes_total: 4,
    probes_needed: 4,
    probes_cached: 0,
    at_once: 6,
    why: "memory of box is used up first",
    hosts: [{ id: "h", name: "box", at_once: 6, binds: "memory", why: "Its memory is used up first." }],
    waves: 4,
    warnings: [],
    ...change,
  };
}

const GiB = 1024 ** 3;

/** A machine with a GPU, on which another sweep runs. */
export function previewHost(change: Partial<PreviewHost> = {}): PreviewHost {
  return {
    id: "h",
    name: "box",
    at_once: 6,
    at_once_now: 4,
    binds: "device_memory",
    why: "GPU memory binds (24 GiB, 3 GiB each); CPU would hold 16",
    memory_bytes: 64 * GiB,
    memory_headroom_bytes: 4 * GiB,
    memory_used_by_others_bytes: GiB,
    memory_reserved_bytes: 16 * GiB,
    memory_sweep_bytes: 8 * GiB,
    devices: [
      {
        id: "GPU-1",
        model: "Simulated GPU 24 GiB",
        simulated: true,
        memory_bytes: 24 * GiB,
        memory_headroom_bytes: GiB,
        memory_reserved_bytes: 12 * GiB,
        memory_sweep_bytes: 12 * GiB,
      },
    ],
    ...change,
  };
}
