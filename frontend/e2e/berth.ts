import { type APIRequestContext, type Page } from "@playwright/test";
import { randomUUID } from "node:crypto";
import { expect } from "./watched";

/** The API's answers, as far as tests read them. They ask beside the page. */
export interface Sweep {
  id: string;
  name: string;
  state: string;
  spec?: Record<string, unknown>;
  max_parallel: number;
  counts: Record<string, number>;
}

export interface Trial {
  number: number;
  state: string;
  value?: number;
  attempts: number;
  failure_kind?: string;
  message?: string;
  shape_key: string;
  params: Record<string, unknown>;
  waiting?: { reason: string }[];
}

export interface Device {
  id: string;
  model: string;
  mode: string;
  cordoned_at?: string;
  cordon_reason?: string;
}

export interface Host {
  id: string;
  name: string;
  state: string;
  devices: Device[];
}

export const minute = 60_000; // ms

/** get reads from the API. */
export async function get<T>(request: APIRequestContext, path: string): Promise<T> {
  const answer = await request.get(`/api/v1${path}`);
  expect(answer.status(), `GET ${path}`).toBe(200);

  return (await answer.json()) as T;
}

export async function list<T>(request: APIRequestContext, path: string): Promise<T[]> {
  return (await get<{ data: T[] }>(request, path)).data;
}

/** submit starts a sweep of a file; the result is its id. */
export async function submit(request: APIRequestContext, file: string): Promise<string> {
  const answer = await request.post("/api/v1/sweeps", {
    headers: { "Content-Type": "application/yaml", "Idempotency-Key": randomUUID() },
    data: Buffer.from(file),
  });
  expect(answer.status(), await answer.text()).toBe(201);

  return ((await answer.json()) as Sweep).id;
}

/** expectState waits until a sweep is in a state. */
export async function expectState(request: APIRequestContext, id: string, state: string): Promise<void> {
  await expect
    .poll(async () => (await get<Sweep>(request, `/sweeps/${id}`)).state, { timeout: 2 * minute, message: id })
    .toBe(state);
}

/** idOf is the id of the sweep that a page shows. */
export function idOf(page: Page): string {
  return new URL(page.url()).pathname.split("/")[2] ?? "";
}

/** small is a sweep of six trials that take no time: three give a value, three end with an error. */
export function small(name: string): string {
  return `name: ${name}
image: berth-test/busy:1
command: [/busy, "{{what}}", "{{n}}", "0.{{n}}"]
parameters:
  - {name: what, values: [train, exit]}
  - {name: n, values: [3, 5, 7]}
  - {name: note, type: fixed, value: '=1+1, "two"'}
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
limits: {max_trials: 6}
retry: {max_attempts: 1}
resources: {device: cpu, cpus: 0.1, memory: 64MiB}
probe: {mode: "off"}
metrics: {source: stdout}
`;
}
