import type { ReactNode } from "react";
import { count } from "@/lib/format";
import { MOST_CHOSEN } from "@/lib/overview/selection";

const MOST_ROWS = 500;
const none: ReadonlySet<number> = new Set();

/** A column of figures, or of words that stay on one line. */
export interface Figures {
  text: string;
  right: boolean;
}

/** num is a column of figures from the left; right is one whose last digits are below each other. */
export const num = (text: string): Figures => ({ text, right: false });
export const right = (text: string): Figures => ({ text, right: true });

interface Props {
  label: string;
  /** heads are the columns; a plain text stands for a column of words, which wrap. */
  heads: (string | Figures)[];
  rows: { key: string; trial?: number; cells: ReactNode[] }[];
  /** twin: it stands for a chart, and scrolls in a box of its own. */
  twin?: boolean;
  chosen?: ReadonlySet<number>;
  /** onToggle chooses the trial of a row, or no longer does, as a press on its mark in a chart does. */
  onToggle?: (trial: number) => void;
}

/** A table of some rows; VirtualTable draws lists of any length. */
export function Table({ label, heads, rows, twin = false, chosen = none, onToggle }: Props) {
  const columns = heads.map((head) =>
    typeof head === "string"
      ? { text: head, head: "", cell: "" }
      : { text: head.text, head: head.right ? "right" : "", cell: head.right ? "num right" : "num" },
  );
  // A scrolling element must be reachable by keyboard.
  const box = twin && { style: { maxHeight: 360, overflow: "auto" }, tabIndex: 0, role: "group", "aria-label": label };

  return (
    <>
      {rows.length > MOST_ROWS && (
        <p>
          The first {count(MOST_ROWS, "row")} of {count(rows.length, "row")}.
        </p>
      )}
      <div className="tablewrap" {...box}>
        <table className="table" aria-label={label}>
          <thead>
            <tr>
              {onToggle && <th scope="col">Chosen</th>}
              {columns.map(({ text, head }, i) => (
                <th key={i} scope="col" className={head}>
                  {text}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_ROWS).map(({ key, trial, cells }) => (
              <tr key={key}>
                {onToggle && (
                  <td>
                    {trial !== undefined && (
                      <input
                        type="checkbox"
                        aria-label={`Choose trial ${trial}`}
                        checked={chosen.has(trial)}
                        disabled={!chosen.has(trial) && chosen.size >= MOST_CHOSEN}
                        onChange={() => onToggle(trial)}
                      />
                    )}
                  </td>
                )}
                {cells.map((cell, i) => (
                  <td key={i} className={columns[i]?.cell}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
