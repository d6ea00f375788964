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

/** configure tells the generated client where the API is. */
export function configure(baseUrl = apiUrl("")): void {
  client.setConfig({ baseUrl, credentials: "same-origin" });
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
  if (response?.status === 401) listeners.forEach((listener) => listener());
  if (response?.ok !== true) throw toApiError(response?.status ?? 0, error);

  return (data ?? {}) as NonNullable<T>;
}
