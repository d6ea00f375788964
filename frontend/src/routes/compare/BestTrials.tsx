import { useMemo } from "react";
import { PageLink } from "@/components/links";
import { num, Table } from "@/components/Table";
import { decimal, value } from "@/lib/format";
import { constants, parameterNames } from "@/lib/trials";
import type { Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

const SHOWN = 20;

interface Props {
  sweeps: Sweep[];
  /** names tell the sweeps apart, in their order. */
  names: string[];
  /** rows are the trials of each sweep. */
  rows: Trial[][];
}

/** The best trials of several sweeps together, of sweeps with one objective: others have no order in common. */
export function BestTrials({ sweeps, names, rows }: Props) {
  const objective = sweeps[0]?.objective;
  const common = sweeps.every(
    (s) => s.objective?.metric === objective?.metric && s.objective?.goal === objective?.goal,
  );
  const best = useMemo(() => {
    const sign = objective?.goal === "minimize" ? 1 : -1;

    return rows
      .flatMap((trials, i) =>
        trials.flatMap((t) => (t.value === undefined ? [] : [{ ...t, value: t.value, sweep: i }])),
      )
      .sort((a, b) => sign * (a.value - b.value))
      .slice(0, SHOWN);
  }, [rows, objective]);
  const same = constants(best);
  const parameters = parameterNames(best).filter((name) => !same.has(name));

  if (!objective || !common || best.length === 0) return null;

  return (
    <section className="card" aria-label="Best trials">
      <Table
        label={`Best ${best.length} trials of all`}
        heads={["Sweep", num("Trial"), num(objective.metric), ...parameters, "Note"]}
        rows={best.map((trial) => ({
          key: `${trial.sweep}/${trial.number}`,
          cells: [
            names[trial.sweep],
            <PageLink
              to="/sweeps/$sweepId/trials/$number"
              params={{ sweepId: trial.sweep_id, number: String(trial.number) }}
              fz="inherit"
            >
              {trial.number}
            </PageLink>,
            decimal(trial.value),
            ...parameters.map((name) => value(trial.params[name])),
            trial.note ?? "",
          ],
        }))}
      />
    </section>
  );
}
