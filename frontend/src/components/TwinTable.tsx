import { count } from "@/lib/format";

const MOST_ROWS = 500;

interface Props {
  label: string;
  heads: string[];
  rows: { key: string; trial?: number; cells: string[] }[];
  chosen: ReadonlySet<number>;
  /** onToggle chooses a trial, or no longer does. */
  onToggle?: (trial: number) => void;
}

/** A chart as a table. A row of a trial can be chosen, as its mark in the chart can. */
export function TwinTable({ label, heads, rows, chosen, onToggle }: Props) {
  return (
    <>
      {rows.length > MOST_ROWS && (
        <p>
          The first {count(MOST_ROWS, "row")} of {count(rows.length, "row")}.
        </p>
      )}
      <div
        className="tablewrap"
        style={{ maxHeight: 360, overflow: "auto" }}
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard
        tabIndex={0}
        role="group"
        aria-label={label}
      >
        <table className="table" aria-label={label}>
          <thead>
            <tr>
              {onToggle && <th scope="col">Chosen</th>}
              {heads.map((head) => (
                <th key={head} scope="col">
                  {head}
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
                        onChange={() => onToggle(trial)}
                      />
                    )}
                  </td>
                )}
                {cells.map((cell, i) => (
                  <td key={heads[i]} className="num">
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
