import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Icon } from "@/components/Icon";
import { LatestAttempt } from "@/components/LatestAttempt";
import { SortButton } from "@/components/SortButton";
import { StateLabel } from "@/components/StateLabel";
import { VirtualTable, type Column } from "@/components/VirtualTable";
import { ago, between, decimal, shortValue, value } from "@/lib/format";
import { breaksConstraint } from "@/lib/objectives";
import { MOST_CHOSEN } from "@/lib/overview/selection";
import { trialLooks } from "@/lib/states";
import { bestFirst, ordered, trialNote } from "@/lib/trials";
import type { Objective } from "@/services/sweeps";
import type { Metric, Trial, TrialSort } from "@/services/trials";

interface Props {
  sweepId: string;
  trials: Trial[];
  now: number;
  sort: TrialSort;
  objective: Objective | undefined;
  best: number | undefined;
  onSort: (sort: TrialSort) => void;
  chosen: ReadonlySet<number>;
  onToggle: (trial: number) => void;
  /** names are the parameters that have a column, metrics the metrics beside the objective. */
  names: string[];
  metrics: string[];
  onEnd?: () => void;
}

/** Trials with their parameters, one a row. */
export function TrialTable(props: Props) {
  const { sweepId, trials, now, sort, objective, best, onSort, chosen, onToggle, names, metrics, onEnd } = props;

  const columns: Column<Trial>[] = [
    {
      key: "chosen",
      header: <span title="Chosen for the charts of the overview">Chosen</span>,
      className: "wide",
      cell: ({ number }) => (
        <input
          type="checkbox"
          aria-label={`Choose trial ${number}`}
          checked={chosen.has(number)}
          disabled={!chosen.has(number) && chosen.size >= MOST_CHOSEN}
          onChange={() => onToggle(number)}
        />
      ),
    },
    {
      key: "number",
      header: <SortButton text="Trial" first="number" sort={sort} onSort={onSort} />,
      sort: ordered(sort, "number"),
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
        <SortButton
          text={objective?.metric ?? "Value"}
          first={bestFirst(objective?.goal)}
          sort={sort}
          onSort={onSort}
        />
      ),
      sort: ordered(sort, "value"),
      className: "num right",
      cell: (trial) => <Result trial={trial} metric={objective?.metric} />,
    },
    ...metrics.map((name): Column<Trial> => ({
      key: `m.${name}`,
      header: name,
      className: "num right",
      cell: ({ results, latest_attempt: latest }) => {
        const result = results?.[name];
        if (result !== undefined) return decimal(result);

        return <LastPoint point={latest?.metrics?.find((metric) => metric.name === name)} />;
      },
    })),
    ...names.map((name): Column<Trial> => ({
      key: `p.${name}`,
      header: name,
      className: "num",
      cell: (trial) => <span title={value(trial.params[name])}>{shortValue(trial.params[name])}</span>,
    })),
    {
      key: "duration",
      header: <SortButton text="Duration" first="duration" sort={sort} onSort={onSort} />,
      sort: ordered(sort, "duration"),
      className: "num right",
      cell: (trial) => between(trial.started_at, trial.finished_at, now),
    },
    {
      key: "where",
      header: "Runs on",
      cell: (trial) => trial.latest_attempt && <LatestAttempt attempt={trial.latest_attempt} />,
    },
    { key: "attempts", header: "Attempts", className: "num right", cell: (trial) => trial.attempts },
    ...(trials.some((trial) => trial.note !== undefined)
      ? [
          {
            key: "note",
            header: "Note",
            cell: ({ note }: Trial) => (
              <span className="clip" title={note}>
                {note}
              </span>
            ),
          },
        ]
      : []),
    {
      key: "why",
      header: "Why",
      cell: (trial) => {
        const note = trialNote(trial);
        const since = trial.waiting_since;

        return note === "" && since === undefined ? null : (
          <span className="clip" title={note}>
            {trial.state === "waiting" && <Icon name="clock" size={12} />}{" "}
            {since !== undefined && `since ${ago(since, now)}${note === "" ? "" : ": "}`}
            {note}
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
      rowHeight={54}
      rowKey={(trial) => String(trial.number)}
      {...(onEnd && { onEnd })}
    />
  );
}

/** The value of a trial; without one its result that is not ranked, or the last that it reported. */
function Result({ trial, metric = "" }: { trial: Trial; metric: string | undefined }) {
  if (trial.value !== undefined) return decimal(trial.value);
  const result = trial.results?.[metric];
  const last = trial.latest_attempt?.last_metric;
  if (breaksConstraint(trial)) {
    return <NoValue>{result !== undefined && `${decimal(result)} `}breaks a constraint</NoValue>;
  }
  if (!last) return "–";

  return (
    <NoValue title={`${last.name} at step ${last.step}`}>
      {last.value === undefined ? "not finite" : decimal(last.value)} at step {last.step}
    </NoValue>
  );
}

function NoValue({ title, children }: { title?: string; children: ReactNode }) {
  return (
    <>
      –
      <div style={{ fontSize: 12, color: "var(--mantine-color-dimmed)" }} title={title}>
        {children}
      </div>
    </>
  );
}

/** The newest point of a metric that a trial reported. */
function LastPoint({ point }: { point: Metric | undefined }) {
  if (!point) return "–";

  return <span title={`at step ${point.step}`}>{point.value === undefined ? "not finite" : decimal(point.value)}</span>;
}
