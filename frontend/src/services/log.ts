import { answer } from "@/api/client";
import { apiUrl } from "@/api/config";
import { readLog, type LogPage } from "@/api/generated";

export type { LogPage, LogPiece } from "@/api/generated";

/** One answer of the API has at most this many bytes of a log. */
export const LOG_PAGE = 1024 * 1024;

export async function logPage(attemptId: string, offset: number, signal?: AbortSignal): Promise<LogPage> {
  const page = await answer(
    readLog({
      path: { id: attemptId },
      query: { offset, limit: LOG_PAGE },
      headers: { Accept: "application/json" },
      parseAs: "json",
      ...(signal && { signal }),
    }),
  );

  return page;
}

/** logStream is where an EventSource follows a log from a byte on. */
export function logStream(attemptId: string, offset: number): string {
  return apiUrl(`/attempts/${encodeURIComponent(attemptId)}/log?follow=true&offset=${offset}`);
}

/** wholeLog puts a log together, page by page, for a download. */
export async function wholeLog(attemptId: string): Promise<string> {
  const parts: string[] = [];
  for (let offset = 0; ;) {
    const page = await logPage(attemptId, offset);
    parts.push(...page.data.map((piece) => piece.text));
    if (page.next_offset <= offset) return parts.join("");
    offset = page.next_offset;
  }
}
