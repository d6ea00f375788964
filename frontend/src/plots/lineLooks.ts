import type { Palette } from "@/plots/palette";

/** LineLook is a colour with a dash, so that lines differ without colour, too. */
export interface LineLook {
  color: string;
  /** dash is in pixels of line and gap; empty = none. */
  dash: number[];
  /** dashName is for the legend; "" = no dash. */
  dashName: string;
}

/** How many lines have a look of their own. */
export const MOST_LOOKS = 12;

const dashes = [[], [6, 4], [2, 3], [12, 4, 2, 4]];
const dashNames = ["", "dashed", "dotted", "dash and dot"];

/** lineLook is that of the line at a place. Each two lines have one dash: when colours begin again, dashes differ. */
export function lineLook(p: Palette, i: number): LineLook {
  const colors = [p.run, p.pick, p.done, p.warn, p.bad, p.wait];
  const dash = Math.floor(i / 2) % dashes.length;

  return { color: colors[i % colors.length] ?? p.run, dash: dashes[dash] ?? [], dashName: dashNames[dash] ?? "" };
}
