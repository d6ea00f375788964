import { apiUrl } from "@/api/config";
import { toApiError } from "@/api/errors";
import { client } from "@/api/generated/client.gen";

type Listener = () => void;

const listeners = new Set<Listener>();

/** onSessionEnd calls back whenever the API answers that it does not know the caller. */
export function onSessionEnd(listener: Listener): () => void {
  listeners.add(listener);

  return () => listeners.delete(listener);
}

const LONGEST = 30_000; // ms: the server waits 5 s at most for a sweep

type Fetch = typeof globalThis.fetch;

/** untimed is fetch without a timeout, for long requests such as a download over a slow line. */
export const untimed: Fetch = (...call) => globalThis.fetch(...call);

/** timed gives up on a server that does not answer. */
export const timed: Fetch = (input, init) => {
  const late = AbortSignal.timeout(LONGEST);
  const asked = input instanceof Request ? input.signal : init?.signal;

  return globalThis.fetch(input, { ...init, signal: asked ? AbortSignal.any([asked, late]) : late });
};

let held = 0;

/** holdSession keeps the page while the caller changes from known by nothing to known by a token; the result ends it. */
export function holdSession(): () => void {
  let holds = true;
  held++;

  return () => {
    if (holds) held--;
    holds = false;
  };
}

/** configure tells the generated client where the API is. */
export function configure(baseUrl = apiUrl("")): void {
  client.setConfig({ baseUrl, credentials: "same-origin", fetch: timed });
}

interface Result<T> {
  data?: T;
  error?: unknown;
  response?: Response;
}

/** answer is the body of a good answer; anything else is thrown as an ApiError. */
export async function answer<T>(call: Promise<Result<T>>): Promise<NonNullable<T>> {
  let result: Result<T>;
  try {
    result = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw toApiError(0, undefined);
  }

  const { data, error, response } = result;
  if (response?.status === 401 && held === 0) listeners.forEach((listener) => listener());
  if (response?.ok !== true) throw toApiError(response?.status ?? 0, error, response?.headers);

  return (data ?? {}) as NonNullable<T>;
}
