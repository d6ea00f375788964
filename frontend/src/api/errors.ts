import type { Problem, ProblemItem } from "@/api/generated";

/** An unexpected answer of the API, or no answer. */
export class ApiError extends Error {
  readonly status: number; // 0 = no answer
  readonly code: string;
  readonly items: ProblemItem[];
  readonly requestId: string;
  readonly retryAfter: number; // seconds; 0 = the server gave none

  constructor(status: number, problem: Partial<Problem>, retryAfter = 0) {
    super(problem.detail ?? problem.title ?? "The server gave no reason.");
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    this.items = problem.errors ?? [];
    this.requestId = problem.request_id ?? "";
    this.retryAfter = retryAfter;
  }
}

/** isAway says that the server does not answer, or has a fault: nothing is wrong with the request. */
export function isAway(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 0 || error.status >= 500);
}

/** toApiError makes an ApiError of whatever the client gives. */
export function toApiError(status: number, body: unknown, headers?: Headers): ApiError {
  const retryAfter = Math.max(0, Number(headers?.get("Retry-After") ?? 0)) || 0; // Berth writes seconds, never a date

  if (status === 0) {
    return new ApiError(0, {
      code: "unreachable",
      detail: "The server does not answer. Check that `berth server` runs and that this machine reaches it.",
    });
  }

  if (typeof body === "object" && body !== null && "detail" in body)
    return new ApiError(status, body as Partial<Problem>, retryAfter);

  return new ApiError(
    status,
    {
      code: "unknown",
      detail: `The server answered ${status} without saying why. A proxy before it may have answered instead.`,
    },
    retryAfter,
  );
}

/** messageOf is the text of any error, for people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** isMissing says that the API knows no such thing. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}
