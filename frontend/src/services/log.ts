import { answer, untimed } from "@/api/client";
import { apiUrl } from "@/api/config";
import { readLog, type LogPage } from "@/api/generated";

export type { LogPage, LogPiece } from "@/api/generated";

/** One answer of the API has at most this many bytes of a log. */
export const LOG_PAGE = 1024 * 1024;

interface PageOptions {
  limit?: number; // bytes
  download?: boolean; // may take long
}

export async function logPage(attemptId: string, offset: number, options: PageOptions = {}): Promise<LogPage> {
  const page = await answer(
    readLog({
      path: { id: attemptId },
      query: { offset, limit: options.limit ?? LOG_PAGE },
      headers: { Accept: "application/json" },
      parseAs: "json",
      ...(options.download === true && { fetch: untimed }),
    }),
  );

  return page;
}

/**
 * logEnd is a place less than a quarter of a page before the end of a log, or from.
 * The API does not say how long a log is; a few answers of one byte do.
 */
export async function logEnd(attemptId: string, from: number): Promise<number> {
  let low = from;
  let step = LOG_PAGE;
  const reaches = async (offset: number) => (await logPage(attemptId, offset, { limit: 1 })).data.length > 0;

  for (; await reaches(low + step); step *= 2) low += step;
  for (let high = low + step; high - low > LOG_PAGE / 4;) {
    const middle = Math.floor((low + high) / 2);
    if (await reaches(middle)) low = middle;
    else high = middle;
  }

  return low;
}

/** full says that a page holds as much as one answer may, so that more may follow: up to 3 bytes less, as it ends with a whole character. */
export function full(page: LogPage): boolean {
  return page.data.reduce((sum, piece) => sum + piece.length, 0) >= LOG_PAGE - 3;
}

/** logStream is where an EventSource follows a log from a byte on. */
export function logStream(attemptId: string, offset: number): string {
  return apiUrl(`/attempts/${encodeURIComponent(attemptId)}/log?follow=true&offset=${offset}`);
}

/** wholeLog puts a log together, page by page, for a download. */
export async function wholeLog(attemptId: string): Promise<string> {
  const parts: string[] = [];
  for (let offset = 0; ;) {
    const page = await logPage(attemptId, offset, { download: true });
    parts.push(...page.data.map((piece) => piece.text));
    if (page.next_offset <= offset) return parts.join("");
    offset = page.next_offset;
  }
}
