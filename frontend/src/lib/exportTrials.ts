import { exactNumber, writeExact } from "@/lib/exact";
import { parameterNames } from "@/lib/trials";
import type { Trial } from "@/services/trials";

type Cell = string | number | boolean | undefined;

/**
 * cell writes one cell of CSV (RFC 4180). A text that begins like a formula gets
 * a leading ', so that no spreadsheet runs it; a number is none.
 */
export function cell(v: Cell): string {
  if (v === undefined) return "";
  if (typeof v === "number") return String(v);
  if (typeof v === "string" && exactNumber(v) !== undefined) return exactNumber(v) ?? "";
  const text = String(v).replace(/^([=+\-@\t\r])/, "'$1");

  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const columns: [string, (trial: Trial) => Cell][] = [
  ["number", (trial) => trial.number],
  ["state", (trial) => trial.state],
  ["value", (trial) => trial.value],
  ["attempts", (trial) => trial.attempts],
  ["failure_kind", (trial) => trial.failure_kind],
  ["message", (trial) => trial.message],
  ["started_at", (trial) => trial.started_at],
  ["finished_at", (trial) => trial.finished_at],
  ["host", (trial) => trial.latest_attempt?.host_name],
  ["device", (trial) => trial.latest_attempt?.device_id],
  ["memory_bytes", (trial) => trial.latest_attempt?.memory_bytes],
  ["memory_peak_bytes", (trial) => trial.latest_attempt?.memory_peak_bytes],
  ["device_bytes", (trial) => trial.latest_attempt?.device_bytes],
  ["device_peak_bytes", (trial) => trial.latest_attempt?.device_peak_bytes],
];

/** csv has a row for each trial and a column for each parameter that any of them has, by page of the list. */
export function csv(pages: Trial[][]): string[] {
  const names = parameterNames(pages.flat());
  const head = [...columns.map(([name]) => name), ...names.map((name) => `params.${name}`)];
  const rows = pages.map((page) =>
    page
      .map((trial) => [...columns.map(([, of]) => of(trial)), ...names.map((name) => plain(trial.params[name]))])
      .map((cells) => `${cells.map(cell).join(",")}\r\n`)
      .join(""),
  );

  return [`${head.map(cell).join(",")}\r\n`, ...rows];
}

/** jsonLines has a trial a line, as the API gives it. */
export function jsonLines(pages: Trial[][]): string[] {
  return pages.map((page) => page.map((trial) => `${writeExact(trial)}\n`).join(""));
}

function plain(v: unknown): Cell {
  return v === undefined || typeof v === "number" || typeof v === "string" || typeof v === "boolean"
    ? v
    : writeExact(v);
}
