const MiB = 1024 * 1024;

/** bytes writes a size as a person reads it: MiB below 10 GiB, then GiB. */
export function bytes(n: number): string {
  const mib = n / MiB;
  if (mib === 0) return "0 MiB";
  if (Math.abs(mib) < 10) return `${trim(mib.toFixed(1))} MiB`;
  if (Math.abs(mib) < 10 * 1024) return `${grouped(Math.round(mib))} MiB`;

  return `${trim((mib / 1024).toFixed(1))} GiB`;
}

/** cores writes thousandths of a core. */
export function cores(milli: number): string {
  const n = trim((milli / 1000).toFixed(milli % 1000 === 0 ? 0 : 2));

  return `${n} ${n === "1" ? "core" : "cores"}`;
}

/** duration writes seconds with the two largest units that matter. */
export function duration(seconds: number): string {
  if (seconds < 0.95) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${trim(seconds.toFixed(1))} s`;

  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return two(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return two(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");

  return two(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

function two(a: number, unitA: string, b: number, unitB: string): string {
  return b === 0 ? `${a} ${unitA}` : `${a} ${unitA} ${b} ${unitB}`;
}

/** range writes from how many to how many seconds something takes. */
export function range(min: number, max: number): string {
  if (min < 1) return `at most ${duration(max)}`;

  return duration(min) === duration(max) ? `about ${duration(max)}` : `${duration(min)} to ${duration(max)}`;
}

/** between is the time from one moment to another, or until now. */
export function between(from: string | undefined, to: string | undefined, now: number): string {
  if (from === undefined) return "–";
  const end = to === undefined ? now : Date.parse(to);

  return duration(Math.max(0, (end - Date.parse(from)) / 1000));
}

/** ago says how long ago something was. */
export function ago(at: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);

  return seconds < 5 ? "just now" : `${duration(Math.floor(coarse(seconds)))} ago`;
}

/** coarse leaves out the smaller unit: of the past it says too much. */
function coarse(seconds: number): number {
  for (const unit of [86_400, 3600, 60]) if (seconds >= unit) return Math.floor(seconds / unit) * unit;

  return Math.floor(seconds);
}

/** small writes a size that may be less than a MiB, as of a log. */
export function small(n: number): string {
  if (n < 1024) return `${n} B`;

  return n < MiB ? `${trim((n / 1024).toFixed(1))} KiB` : bytes(n);
}

const dateTime: Intl.DateTimeFormatOptions = {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
};

// Kept: to make one takes longer than to draw a row of a table.
const momentFormat = new Intl.DateTimeFormat("en-GB", dateTime);
const zonedFormat = new Intl.DateTimeFormat("en-GB", { ...dateTime, timeZoneName: "short" });
const groupedFormat = new Intl.NumberFormat("en-US");

/** zoned is a moment with its zone, for a title. */
export function zoned(at: string): string {
  return zonedFormat.format(new Date(at));
}

/** moment is a date and time in the reader's zone. */
export function moment(at: string): string {
  return momentFormat.format(new Date(at));
}

/** decimal writes a measured number with at most six significant digits; from 100,000 on, one behind the point. */
export function decimal(n: number): string {
  if (n === 0) return "0";
  if (Number.isInteger(n) && Math.abs(n) < 1e15) return grouped(n);
  const size = Math.abs(n);
  if (size < 1e-4 || size >= 1e9) return n.toExponential(3).replace(/\.?0+e/, "e");

  return size >= 1e5 ? grouped(Math.round(n * 10) / 10) : trim(n.toPrecision(6));
}

/** percent writes a part of 1. */
export function percent(share: number): string {
  return `${trim((share * 100).toFixed(share < 0.1 ? 1 : 0))} %`;
}

/** count writes a number of things: "1 trial", "24 trials". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

/** value writes the value of a parameter. */
export function value(v: unknown): string {
  if (v === undefined) return "–";
  if (typeof v === "number") return Math.abs(v) < 1e-4 && v !== 0 ? v.toExponential() : String(v);
  if (typeof v === "string") return v;

  return JSON.stringify(v);
}

/** shortValue is the same for a table: a number that is not whole has at most six significant digits. */
export function shortValue(v: unknown): string {
  return typeof v === "number" && !Number.isInteger(v) ? decimal(v) : value(v);
}

/** shortId is as much of the id of a sweep as tells it from others. */
export function shortId(id: string): string {
  return id.slice(0, 13);
}

/** gpuName shortens an id such as GPU-1b2c3d4e-… in the middle: ids of simulated GPUs differ at their end alone. */
export function gpuName(id: string): string {
  return id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id;
}

export function grouped(n: number): string {
  return groupedFormat.format(n);
}

function trim(text: string): string {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}
