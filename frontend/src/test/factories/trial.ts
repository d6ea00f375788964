import type { Attempt, AttemptMemory, FileList, MemoryPoint, Rejection, Trial } from "@/services/trials";

const MiB = 1024 * 1024;

export function trial(change: Partial<Trial> = {}): Trial {
  return {
    id: "t1",
    sweep_id: "s1",
    number: 1,
    origin: { by: "random" },
    params: { lr: 0.01, optimizer: "adam", batch: 32 },
    shape_key: "0123456789abcdef",
    state: "succeeded",
    value: 0.95,
    attempts: 1,
    created_at: "2026-01-01T00:00:00Z",
    started_at: "2026-01-01T00:00:05Z",
    finished_at: "2026-01-01T00:00:25Z",
    ...change,
  };
}

/** No files of an attempt that ended and whose files are stored. */
export function files(change: Partial<FileList> = {}): FileList {
  return {
    attempt_id: "a1",
    attempt: 1,
    state: "stored",
    files: 0,
    bytes: 0,
    left_out: 0,
    data: [],
    left_out_files: [],
    ...change,
  };
}

export function rejection(change: Partial<Rejection> = {}): Rejection {
  return {
    host_id: "h1",
    host_name: "box",
    dimension: "memory",
    needed: 910 * MiB,
    free: 400 * MiB,
    reason: "box has too little memory free",
    ...change,
  };
}

export function waitingTrial(): Trial {
  return trial({ state: "waiting", value: undefined, attempts: 0, waiting: [rejection()], finished_at: undefined });
}

export function runningTrial(): Trial {
  return trial({
    state: "running",
    value: undefined,
    finished_at: undefined,
    latest_attempt: {
      id: "a1",
      number: 1,
      stage: "main",
      state: "running",
      purpose: "run",
      host_id: "h1",
      host_name: "box",
      device_id: "GPU-1",
      memory_bytes: 1000 * MiB,
      memory_peak_bytes: 0,
      device_bytes: 2048 * MiB,
      device_peak_bytes: 1500 * MiB,
      last_metric: { name: "val", step: 3, value: 0.8, status: "finite", at: "2026-01-01T00:00:20Z" },
    },
  });
}

export function failedTrial(): Trial {
  return trial({
    state: "failed",
    value: undefined,
    failure_kind: "user_error",
    message: "The program ended with exit code 3. Its log says why.",
  });
}

/** A trial of a sweep with a constraint, which it breaks. */
export function brokenTrial(): Trial {
  return trial({
    value: undefined,
    results: { acc: 0.97, ms: 30 },
    message: "finished; it breaks a constraint, so it is not ranked: its ms of 30 is more than 20",
  });
}

export function infeasibleTrial(): Trial {
  return trial({
    state: "infeasible",
    value: undefined,
    attempts: 3,
    failure_kind: "too_big",
    message: "It needs more than any machine has.",
  });
}

export function attempt(change: Partial<Attempt> = {}): Attempt {
  return {
    id: "a1",
    trial_id: "t1",
    number: 1,
    stage: "main",
    purpose: "run",
    state: "finished",
    host_id: "h1",
    demand: { memory_bytes: 1000 * MiB, cpu_milli: 1000 },
    failure_kind: "ok",
    exit_code: 0,
    usage: {
      memory_peak_bytes: 800 * MiB,
      device_activity: { sm_milli: 0, dram_milli: 0, tensor_milli: 0 },
      cpu_seconds: 10,
      wall_seconds: 20,
      samples: 200,
    },
    placed_at: "2026-01-01T00:00:01Z",
    started_at: "2026-01-01T00:00:02Z",
    finished_at: "2026-01-01T00:00:22Z",
    ...change,
  };
}

export function outOfMemoryAttempt(): Attempt {
  const base = attempt();

  return attempt({
    failure_kind: "host_oom",
    exit_code: 137,
    message: "The kernel killed it for memory; it runs again with 1,500 MiB.",
    usage: { ...base.usage, memory_peak_bytes: 1000 * MiB, oom_kills: 1 },
  });
}

export function runningAttempt(): Attempt {
  const base = attempt();

  return attempt({
    state: "running",
    failure_kind: undefined,
    exit_code: undefined,
    finished_at: undefined,
    usage: { ...base.usage, memory_peak_bytes: 0, samples: 0 },
  });
}

/** point is an attempt's memory this many seconds after its start. */
export function point(second: number, change: Partial<MemoryPoint> = {}): MemoryPoint {
  return { at: new Date(Date.parse("2026-01-01T00:00:02Z") + 1000 * second).toISOString(), ...change };
}

export function memory(points: MemoryPoint[], change: Partial<AttemptMemory> = {}): AttemptMemory {
  return {
    points,
    interval_seconds: 1,
    host_reserved_bytes: 1000 * MiB,
    device_reserved_bytes: 0,
    ...change,
  };
}
