import { lazy, useCallback, useMemo, useRef, type ReactNode } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { num, Table } from "@/components/Table";
import { count, decimal, grouped, shortValue } from "@/lib/format";
import { axesOf, inside, place, type Axis } from "@/lib/overview/axes";
import { history, within } from "@/lib/overview/history";
import { MOST_LINES, sample, scored, type Scored } from "@/lib/overview/sample";
import { trialLooks } from "@/lib/states";
import { historyOption, jitter, sliceOption } from "@/plots/options";
import { parallelOption } from "@/plots/parallelOption";
import { palette, type Palette } from "@/plots/palette";
import type { Chosen } from "@/routes/sweep/useChosen";
import type { Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

const EChart = lazy(() => import("@/plots/EChart"));

/** More charts of single parameters than this are too many to read. */
const MOST_SLICES = 12;

interface Props {
  /** cleared changes when the choice is undone: ranges that were drawn on axes go. */
  cleared: number;
  sweep: Sweep;
  trials: Trial[];
  /** part: there are more trials than these, which are the best and the newest. */
  part?: boolean;
  chosen: Chosen;
  dark: boolean;
  /** children come behind the history. */
  children?: ReactNode;
}

/** The charts that are made of trials alone: history, parallel coordinates, slices. */
export function TrialCharts({ cleared, sweep, trials, part = false, chosen, dark, children }: Props) {
  const p = palette(dark);
  const metric = sweep.objective?.metric ?? "value";
  const goal = sweep.objective?.goal ?? "maximize";
  const done = useMemo(() => scored(trials), [trials]);
  const past = useMemo(() => history(trials, goal), [trials, goal]);
  const axes = useMemo(() => axesOf(done, sweep.spec), [done, sweep.spec]);
  const lines = useMemo(() => sample(done, goal), [done, goal]);
  const names = useMemo(() => axes.map((axis) => axis.name), [axes]);
  const best = useMemo(() => lines.toReversed(), [lines]);

  const twin = () => (
    <Table
      twin
      label="Trials with a value, the best first"
      heads={["Trial", metric, ...names].map(num)}
      rows={best.map((trial) => ({
        key: String(trial.number),
        trial: trial.number,
        cells: [String(trial.number), decimal(trial.value), ...axes.map((axis) => shortValue(trial.params[axis.name]))],
      }))}
      chosen={chosen.set}
      onToggle={chosen.toggle}
    />
  );

  return (
    <>
      <HistoryCard trials={trials} part={part} past={past} metric={metric} chosen={chosen} p={p} />
      {children}
      {done.length > 1 && axes.length > 0 && (
        <>
          <ParallelCard
            key={`${cleared}/${names.join("/")}`} // ranges go with the axes on which they were drawn
            axes={axes}
            lines={lines}
            total={done.length}
            metric={metric}
            chosen={chosen}
            p={p}
            twin={twin}
          />
          <Slices axes={axes} lines={lines} total={done.length} metric={metric} chosen={chosen} p={p} twin={twin} />
        </>
      )}
    </>
  );
}

interface Drawn {
  metric: string;
  chosen: Chosen;
  p: Palette;
}

function HistoryCard({
  trials,
  part,
  past,
  metric,
  chosen,
  p,
}: Drawn & { trials: Trial[]; part: boolean; past: ReturnType<typeof history> }) {
  const option = useMemo(() => historyOption(past, metric, chosen.set, p), [past, metric, chosen.set, p]);
  const best = past.best.at(-1)?.[1];

  return (
    <ChartCard
      title="History"
      note={
        <>
          <Legend
            items={[
              { text: `done (${grouped(past.done.length)})`, color: p.run },
              { text: "best so far", color: p.done },
              { text: `running, at its last value (${grouped(past.running.length)})`, color: p.warn },
              {
                text: `failed, a cross at the ${past.goal === "minimize" ? "top" : "bottom"} (${grouped(past.failed.length)})`,
                color: p.bad,
              },
            ]}
          />
          {part && `Counts are of the ${count(trials.length, "trial")} that are shown. `}
          Trials that were stopped early or break a constraint are left out. Draw a rectangle to choose those in it that
          are done.
        </>
      }
      twin={() => (
        <Table
          twin
          label="Trials by number"
          heads={["Trial", "State", metric].map(num)}
          rows={trials.map((trial) => ({
            key: String(trial.number),
            trial: trial.number,
            cells: [
              String(trial.number),
              trialLooks[trial.state].text,
              trial.value === undefined ? "–" : decimal(trial.value),
            ],
          }))}
          chosen={chosen.set}
          onToggle={chosen.toggle}
        />
      )}
    >
      <EChart
        option={option}
        height={300}
        label={`${metric} by trial: ${count(past.done.length, "trial")} done, ${grouped(past.failed.length)} failed, ${grouped(past.running.length)} running${part ? ` of the ${grouped(trials.length)} that are shown` : ""}${best === undefined ? "" : `, best so far ${decimal(best)}`}`}
        onPick={chosen.toggle}
        onRectangle={(x, y) =>
          chosen.choose(
            within(
              past.done.map(([n, v]) => [n, v, n]),
              x,
              y,
            ),
          )
        }
      />
    </ChartCard>
  );
}

interface Parameters extends Drawn {
  axes: Axis[];
  lines: Scored[];
  twin: () => ReactNode;
}

function ParallelCard({ axes, lines, total, metric, chosen, p, twin }: Parameters & { total: number }) {
  const option = useMemo(
    () => parallelOption(axes, lines, metric, chosen.set, p),
    [axes, lines, metric, chosen.set, p],
  );
  const ranges = useRef(new Map<number, [number, number][]>());
  const { choose } = chosen;
  const onAxis = useCallback(
    (axis: number, drawn: [number, number][]) => {
      ranges.current.set(axis, drawn);
      const all = [...ranges.current.values()].every((list) => list.length === 0);
      choose(
        all
          ? []
          : lines.filter((trial) => inside(axes, ranges.current, trial, trial.value)).map((trial) => trial.number),
      );
    },
    [axes, lines, choose],
  );

  return (
    <ChartCard
      title="Parallel coordinates"
      note={
        <>
          {sampled(lines, total)}A line is a trial; the best tenth is in colour. Draw on an axis to choose a range;
          press the axis to undo it.
        </>
      }
      twin={twin}
    >
      <div style={{ overflowX: "auto" }}>
        <div style={{ minWidth: 90 * (axes.length + 1) }}>
          <EChart
            option={option}
            height={340}
            label={`Parallel coordinates of ${count(lines.length, "trial")} over ${axes.map((axis) => axis.name).join(", ")} and ${metric}`}
            onAxis={onAxis}
          />
        </div>
      </div>
    </ChartCard>
  );
}

/** sampled says which trials are drawn, where they are not all. */
function sampled(lines: Scored[], total: number): string {
  return total > lines.length
    ? `Shown are ${grouped(lines.length)} of ${grouped(total)} trials: the best ${grouped(MOST_LINES / 2)} and a sample of the others. `
    : "";
}

function Slices({ axes, lines, total, metric, chosen, p, twin }: Parameters & { total: number }) {
  const shown = axes.slice(0, MOST_SLICES);

  return (
    <ChartCard
      title="By parameter"
      note={
        <>
          {sampled(lines, total)}
          {metric} by the value of each parameter. Marks of one choice are set apart sideways.
          {axes.length > shown.length && ` The first ${shown.length} of ${axes.length} parameters.`}
        </>
      }
      twin={twin}
    >
      <div className="charts">
        {shown.map((axis) => (
          <Slice key={axis.name} axis={axis} lines={lines} metric={metric} chosen={chosen} p={p} />
        ))}
      </div>
    </ChartCard>
  );
}

function Slice({ axis, lines, metric, chosen, p }: Drawn & { axis: Axis; lines: Scored[] }) {
  const option = useMemo(() => sliceOption(axis, lines, metric, chosen.set, p), [axis, lines, metric, chosen.set, p]);
  const points = useMemo(
    () =>
      lines.flatMap((trial): [number, number, number][] => {
        const at = place(axis, trial);

        return at === undefined ? [] : [[axis.labels ? at + jitter(trial.number) : at, trial.value, trial.number]];
      }),
    [axis, lines],
  );

  return (
    <EChart
      option={option}
      height={240}
      label={`${metric} by ${axis.name} of ${count(points.length, "trial")}`}
      onPick={chosen.toggle}
      onRectangle={(x, y) => chosen.choose(within(points, x, y))}
    />
  );
}
