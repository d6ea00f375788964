import { bytes, decimal, duration, grouped, percent } from "@/lib/format";

/** The unit of an axis: it decides the number format, the ticks, and whether the axis begins at 0. */
export type Unit = "step" | "seconds" | "clock" | "number" | "bytes" | "share";

const GiB = 1024 ** 3;

/** gib writes a mark of an axis that goes beyond 10 GiB: one axis has one unit. */
const gib = (n: number) => `${decimal(n / GiB)} GiB`;

/** clock is a moment of the last days, in the reader's zone. */
const clock = (second: number, exact: Intl.DateTimeFormatOptions = {}) =>
  new Date(second * 1000).toLocaleString("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit", ...exact });

/** written is a value that stands alone. */
export const written: Record<Unit, (n: number) => string> = {
  step: grouped,
  seconds: (n) => (n === 0 ? "0 s" : duration(n)),
  clock: (n) => clock(n),
  number: decimal,
  bytes,
  share: percent,
};

/** ticks are distances of marks. Round numbers of time and of memory are not powers of ten. */
export const ticks: Partial<Record<Unit, number[]>> = {
  step: Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat(),
  seconds: [
    1,
    2,
    5,
    10,
    15,
    30,
    ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 10_080].map((minutes) => 60 * minutes),
  ],
  bytes: Array.from({ length: 24 }, (_, power) => 2 ** (20 + power)), // 1 MiB to 8 TiB
};

/** marksOf writes the marks of an axis that are incr apart, so that each has a text of its own. */
export function marksOf(unit: Unit, marks: number[], incr: number): string[] {
  const digits = unit === "number" ? digitsOf(incr) : 0;

  return marks.map((n) => {
    if (unit === "number") return exactly(n, digits);
    if (unit === "seconds") return span(n);
    if (unit === "clock" && incr < 60) return clock(n, { second: "2-digit" });

    return unit === "bytes" && (marks.at(-1) ?? 0) >= 10 * GiB ? gib(n) : written[unit](n);
  });
}

/** digitsOf is how many digits a distance has behind the point. */
function digitsOf(incr: number): number {
  const [digits = "", power] = incr.toExponential().split("e");

  return Math.max(0, (digits.split(".")[1] ?? "").length - Number(power));
}

/** whole is a mark with all its digits, as a power of ten where it is long and that is shorter. */
export function whole(n: number): string {
  const text = exactly(n, 100);
  const power = n.toExponential();

  return text.length > 12 && power.length < text.length ? power : text;
}

/** exactly is like decimal, with up to this many digits behind the point. */
function exactly(n: number, digits: number): string {
  const rounded = Number(n.toFixed(digits));
  const size = Math.abs(rounded);
  if (size >= 1e15 || (size < 1e-4 && size > 0)) return rounded.toExponential();
  if (size < 1e5 && !Number.isInteger(rounded)) return String(rounded);

  return rounded.toLocaleString("en-US", { maximumFractionDigits: Math.min(digits, 20) });
}

/** span looks like duration, with all units. */
function span(seconds: number): string {
  let rest = seconds;
  const parts = units.flatMap(([unit, size]) => {
    const n = Math.floor(rest / size);
    rest -= n * size;

    return n > 0 ? `${n} ${unit}` : [];
  });

  return parts.length > 0 ? parts.join(" ") : "0 s";
}

const units: [string, number][] = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];
