import type { Device, Host, KeptHost, Lease, QueuedAttempt } from "@/services/hosts";

const GiB = 1024 ** 3;

export function device(change: Partial<Device> = {}): Device {
  return {
    id: "GPU-1",
    host_id: "h1",
    model: "NVIDIA H200",
    class: "NVIDIA H200",
    mode: "mps",
    memory_bytes: 140 * GiB,
    headroom_bytes: 2 * GiB,
    reserved_bytes: 20 * GiB,
    free_bytes: 140 * GiB,
    max_contexts: 48,
    contexts_reserved: 20,
    max_attempts: 0,
    attempts: 20,
    ...change,
  };
}

export function simulatedDevice(): Device {
  return device({
    id: "GPU-fake-0",
    model: "Simulated GPU 24 GiB",
    class: "Simulated GPU 24 GiB",
    mode: "time_slicing",
    simulated: true,
  });
}

export function cordonedDevice(): Device {
  return device({ cordoned_at: "2026-01-01T00:00:00Z", cordon_reason: "ECC errors" });
}

export function sickDevice(): Device {
  return device({ problem: "The driver reports Xid 79: the GPU has fallen off the bus." });
}

export function advisedDevice(): Device {
  return device({
    advice: { mode: "mps", at_once: 24, capped: true, trying: false, why: "24 end 11 times as fast as one." },
  });
}

export function host(change: Partial<Host> = {}): Host {
  return {
    id: "h1",
    name: "box",
    state: "ready",
    cpu_milli: 16_000,
    cpu_milli_reserved: 6000,
    memory_bytes: 64 * GiB,
    memory_headroom_bytes: 4 * GiB,
    memory_reserved_bytes: 10 * GiB,
    memory_free_bytes: 62 * GiB,
    used_by_others_bytes: 2 * GiB,
    disk_free_bytes: 100 * GiB,
    disk_headroom_bytes: 5 * GiB,
    disk_bytes: 200 * GiB,
    max_attempts: 0,
    attempts: 6,
    devices: [],
    last_seen_at: "2026-01-01T00:00:00Z",
    ...change,
  };
}

export function lease(change: Partial<Lease> = {}): Lease {
  return {
    attempt_id: "a1",
    attempt_state: "running",
    number: 1,
    stage: "main",
    purpose: "run",
    sweep_id: "s1",
    sweep_name: "digits",
    trial: 3,
    host_id: "h1",
    host_name: "box",
    demand: { memory_bytes: 16 * GiB, cpu_milli: 1000 },
    state: "held",
    since: "2026-01-01T00:00:00Z",
    ...change,
  };
}

export function suspectLease(): Lease {
  return lease({ attempt_id: "a2", trial: 4, state: "suspect" });
}

export function queued(change: Partial<QueuedAttempt> = {}): QueuedAttempt {
  return {
    position: 1,
    attempt_id: "q1",
    number: 1,
    stage: "main",
    purpose: "run",
    sweep_id: "s1",
    sweep_name: "digits",
    sweep_state: "running",
    trial: 9,
    since: "2026-01-01T00:00:00Z",
    waiting: [],
    ...change,
  };
}

export function keptHost(change: Partial<KeptHost> = {}): KeptHost {
  return { id: "h1", name: "box", since: "2026-01-01T00:01:00Z", ...change };
}
