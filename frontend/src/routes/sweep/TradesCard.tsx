import { lazy, useMemo } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { num, Table } from "@/components/Table";
import { count, decimal, grouped } from "@/lib/format";
import { objectivesOf } from "@/lib/objectives";
import { within } from "@/lib/overview/history";
import { scored } from "@/lib/overview/sample";
import { tradeAt, tradesOption, type Trade } from "@/plots/options";
import { palette } from "@/plots/palette";
import type { Chosen } from "@/routes/sweep/useChosen";
import type { Insight } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

const EChart = lazy(() => import("@/plots/EChart"));

type Front = NonNullable<Insight["front"]>;

interface Props {
  sweep: Sweep;
  front: Front;
  trials: Trial[];
  chosen: Chosen;
  dark: boolean;
}

/** The best trades of several objectives among the trials that keep the constraints. */
export function TradesCard({ sweep, front, trials, chosen, dark }: Props) {
  const p = palette(dark);
  const metrics = useMemo(() => objectivesOf(sweep.objective).map(({ metric }) => metric), [sweep.objective]);
  const trades = useMemo(() => tradesOf(front, trials), [front, trials]);
  const option = useMemo(() => tradesOption(trades, metrics, chosen.set, p), [trades, metrics, chosen.set, p]);

  return (
    <ChartCard
      title="Best trades"
      note={
        <>
          <Legend
            items={[
              {
                text: `diamond: no other trial is better in all objectives (${grouped(front.length)})`,
                color: p.done,
              },
              { text: `other trials (${grouped(trades.length - front.length)})`, color: p.run },
            ]}
          />
          {metrics.length > 2 && `The chart shows the first two of ${metrics.length} objectives, the table all. `}
          {sweep.constraints && "Trials that break a constraint are left out. "}
          Draw a rectangle to choose the trials in it.
        </>
      }
      twin={() => (
        <Table
          twin
          label="Best trades"
          heads={["Trial", ...metrics].map(num)}
          rows={front.map(({ trial, results }) => ({
            key: String(trial),
            trial,
            cells: [String(trial), ...metrics.map((name) => decimal(results[name] ?? NaN))],
          }))}
          chosen={chosen.set}
          onToggle={chosen.toggle}
        />
      )}
    >
      <EChart
        option={option}
        height={300}
        label={`Best trades of ${metrics.slice(0, 2).join(" and ")}: ${grouped(front.length)} of ${count(trades.length, "trial")}`}
        onPick={chosen.toggle}
        onRectangle={(...drawn) =>
          chosen.choose(
            within(
              trades.map((one) => [...tradeAt(one, metrics), one.trial]),
              ...drawn,
            ),
          )
        }
      />
    </ChartCard>
  );
}

/** tradesOf are the trials that have a value and results; the front comes last, to be drawn on top. */
function tradesOf(front: Front, trials: Trial[]): Trade[] {
  const best = new Set(front.map(({ trial }) => trial));
  const others = scored(trials).filter(({ number }) => !best.has(number));

  return [
    ...others.flatMap(({ number, results }) => (results ? [{ trial: number, results, front: false }] : [])),
    ...front.map((one) => ({ ...one, front: true })),
  ];
}
