import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { Icon } from "@/components/Icon";
import { StateLabel } from "@/components/StateLabel";
import { VirtualTable, type Column } from "@/components/VirtualTable";
import { decimal, value } from "@/lib/format";
import { trialLooks } from "@/lib/states";
import { parameterNames, trialNote } from "@/lib/trials";
import type { TrialSort } from "@/routes/search";
import type { Trial } from "@/services/trials";

interface Props {
  sweepId: string;
  trials: Trial[];
  sort: TrialSort;
  metric: string | undefined;
  best: number | undefined;
  onSort: (sort: TrialSort) => void;
  onEnd?: () => void;
}

/** Trials with all their parameters, one a row. */
export function TrialTable({ sweepId, trials, sort, metric, best, onSort, onEnd }: Props) {
  const names = useMemo(() => parameterNames(trials), [trials]);

  const columns: Column<Trial>[] = [
    {
      key: "number",
      header: (
        <button type="button" className="sort" onClick={() => onSort(sort === "number" ? "-number" : "number")}>
          Trial {sort === "number" ? "↑" : sort === "-number" ? "↓" : ""}
        </button>
      ),
      sort: sort === "number" ? "ascending" : sort === "-number" ? "descending" : "none",
      className: "num",
      cell: (trial) => (
        <Link to="/sweeps/$sweepId/trials/$number" params={{ sweepId, number: String(trial.number) }}>
          {trial.number}
          {trial.number === best && " (best)"}
        </Link>
      ),
    },
    { key: "state", header: "State", cell: (trial) => <StateLabel look={trialLooks[trial.state]} /> },
    {
      key: "value",
      header: (
        <button type="button" className="sort" onClick={() => onSort("best")} title="Best first">
          {metric ?? "Value"} {sort === "best" ? "↓" : ""}
        </button>
      ),
      sort: sort === "best" ? "other" : "none",
      className: "num right",
      cell: (trial) => (trial.value === undefined ? "–" : decimal(trial.value)),
    },
    ...names.map((name): Column<Trial> => ({
      key: `p.${name}`,
      header: name,
      className: "num",
      cell: (trial) => value(trial.params[name]),
    })),
    {
      key: "attempts",
      header: "Attempts",
      className: "num right",
      cell: (trial) => trial.attempts,
    },
    {
      key: "note",
      header: "Why",
      cell: (trial) => {
        const note = trialNote(trial);

        return note === "" ? null : (
          <span className="clip" title={note}>
            {trial.state === "waiting" && <Icon name="clock" size={12} />} {note}
          </span>
        );
      },
    },
  ];

  return (
    <VirtualTable
      label="Trials"
      columns={columns}
      rows={trials}
      rowHeight={39}
      rowKey={(trial) => String(trial.number)}
      {...(onEnd && { onEnd })}
    />
  );
}
