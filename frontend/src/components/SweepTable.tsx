import { VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo, type ReactNode } from "react";
import { ProgressBar } from "@/components/ProgressBar";
import { SortButton } from "@/components/SortButton";
import { StateLabel } from "@/components/StateLabel";
import { VirtualTable, type Column } from "@/components/VirtualTable";
import { apart } from "@/lib/compare";
import { ago, between, decimal, zoned } from "@/lib/format";
import { progressText, segments } from "@/lib/progress";
import { ended, sweepLooks } from "@/lib/states";
import { ordered } from "@/lib/trials";
import type { Sweep, SweepSort } from "@/services/sweeps";

interface Props {
  sweeps: Sweep[];
  now: number;
  sort: SweepSort;
  onSort: (sort: SweepSort) => void;
  /** chosen are the ids of those with which something is to be done. */
  chosen: ReadonlySet<string>;
  onToggle: (id: string) => void;
  /** remaining is how long a sweep still takes; it is drawn for running ones. */
  remaining: (sweep: Sweep) => ReactNode;
  onEnd?: () => void;
}

/** All sweeps, one a row. */
export function SweepTable({ sweeps, now, sort, onSort, chosen, onToggle, remaining, onEnd }: Props) {
  const columns = useMemo(
    () => [chooser(sweeps, chosen, onToggle), ...columnsAt(now, sort, onSort, remaining)],
    [sweeps, now, sort, onSort, chosen, onToggle, remaining],
  );

  return (
    <VirtualTable
      label="Sweeps"
      columns={columns}
      rows={sweeps}
      rowKey={(sweep) => sweep.id}
      {...(onEnd && { onEnd })}
    />
  );
}

function chooser(sweeps: Sweep[], chosen: Props["chosen"], onToggle: Props["onToggle"]): Column<Sweep> {
  const names = apart(sweeps);
  const nameOf = new Map(sweeps.map((sweep, i) => [sweep.id, names[i]]));

  return {
    key: "chosen",
    header: <VisuallyHidden>Chosen</VisuallyHidden>,
    className: "choose",
    cell: (sweep) => (
      <input
        type="checkbox"
        aria-label={`Choose ${nameOf.get(sweep.id) ?? sweep.name}`}
        checked={chosen.has(sweep.id)}
        onChange={() => onToggle(sweep.id)}
      />
    ),
  };
}

function columnsAt(
  now: number,
  sort: SweepSort,
  onSort: (sort: SweepSort) => void,
  remaining: (sweep: Sweep) => ReactNode,
): Column<Sweep>[] {
  return [
    {
      key: "name",
      header: <SortButton text="Name" first="name" sort={sort} onSort={onSort} />,
      sort: ordered(sort, "name"),
      cell: (sweep) => (
        <>
          <Link to="/sweeps/$sweepId" params={{ sweepId: sweep.id }} className="clip" title={sweep.name}>
            {sweep.name}
          </Link>
          <span className="clip" title={sweep.note}>
            <span className="mono small">{sweep.id.slice(0, 8)}</span>
            {sweep.note !== undefined && ` ${sweep.note}`}
          </span>
        </>
      ),
    },
    { key: "state", header: "State", cell: (sweep) => <StateLabel look={sweepLooks[sweep.state]} /> },
    {
      key: "progress",
      header: "Trials",
      cell: (sweep) => (
        <ProgressBar
          label={sweep.name}
          segments={segments(sweep.counts, ended(sweep.state))}
          text={progressText(sweep.counts, ended(sweep.state))}
        />
      ),
    },
    {
      key: "best",
      header: "Best value",
      className: "num",
      cell: (sweep) =>
        sweep.best ? (
          <>
            {decimal(sweep.best.value)}
            <div style={{ fontSize: 12, color: "var(--mantine-color-dimmed)" }}>{sweep.objective?.metric}</div>
          </>
        ) : (
          "–"
        ),
    },
    { key: "by", header: "Created by", className: "wide", cell: (sweep) => sweep.created_by },
    {
      key: "created",
      header: <SortButton text="Created" first="-created_at" sort={sort} onSort={onSort} />,
      sort: ordered(sort, "created_at"),
      className: "num wide",
      cell: (sweep) => <time title={zoned(sweep.created_at)}>{ago(sweep.created_at, now)}</time>,
    },
    {
      key: "finished",
      header: <SortButton text="Ended" first="-finished_at" sort={sort} onSort={onSort} />,
      sort: ordered(sort, "finished_at"),
      className: "num wide",
      cell: (sweep) =>
        sweep.finished_at === undefined ? (
          "–"
        ) : (
          <time title={zoned(sweep.finished_at)}>{ago(sweep.finished_at, now)}</time>
        ),
    },
    {
      key: "duration",
      header: "Duration",
      className: "num right",
      cell: (sweep) => (
        <>
          {between(sweep.started_at, sweep.finished_at, now)}
          {sweep.state === "running" && remaining(sweep)}
        </>
      ),
    },
  ];
}
