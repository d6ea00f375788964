import { queryOptions } from "@tanstack/react-query";
import { timed } from "@/api/client";
import { readConfig } from "@/api/config";
import { toApiError } from "@/api/errors";
import type { Health } from "@/api/generated";
import { again, EACH_MINUTE } from "@/services/query";

export type { Finding } from "@/api/generated";

/** /healthz is outside the API's path, and its 503 has the findings too. Some of it is measured at each call: it is asked slowly. */
export function healthQuery(live: boolean) {
  return queryOptions({
    queryKey: ["health"],
    queryFn: async ({ signal }): Promise<Health> => {
      let response: Response;
      try {
        response = await timed(`${readConfig().base}healthz`, { signal, credentials: "same-origin" });
      } catch (error) {
        if (error instanceof DOMException && error.name === "AbortError") throw error;
        throw toApiError(0, undefined);
      }
      const body: unknown = await response.json().catch(() => undefined);
      if (isHealth(body)) return body;

      throw toApiError(response.status, body);
    },
    refetchInterval: (query) => again(query) || (live && EACH_MINUTE),
    retry: false,
  });
}

function isHealth(body: unknown): body is Health {
  return typeof body === "object" && body !== null && "findings" in body && Array.isArray(body.findings);
}
