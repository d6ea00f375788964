import { Checkbox, useComputedColorScheme } from "@mantine/core";
import { useQueries, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { lazy, useMemo, useState } from "react";
import { isMissing } from "@/api/errors";
import { ChartCard, Legend } from "@/components/ChartCard";
import { ErrorNote } from "@/components/ErrorNote";
import { PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { PageTitle } from "@/components/PageTitle";
import { StateLabel } from "@/components/StateLabel";
import { num, Table } from "@/components/Table";
import { apart, specLines } from "@/lib/compare";
import { count, decimal } from "@/lib/format";
import { history } from "@/lib/overview/history";
import { progressText } from "@/lib/progress";
import { ended, sweepLooks } from "@/lib/states";
import { bestOption, type BestLine } from "@/plots/bestOption";
import { lineLook } from "@/plots/lineLooks";
import { palette } from "@/plots/palette";
import { BestCurves } from "@/routes/compare/BestCurves";
import { BestTrials } from "@/routes/compare/BestTrials";
import { usePaused } from "@/routes/usePaused";
import { chartTrialsQuery, type Part } from "@/services/overview";
import { sweepQuery, type Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

const none: Trial[] = [];
const EChart = lazy(() => import("@/plots/EChart"));

function found(read: UseQueryResult<Sweep>[]) {
  const missing = read.map((one) => isMissing(one.error));

  return {
    missing,
    sweeps: read.flatMap((one, i) => (missing[i] === true ? [] : (one.data ?? []))),
    failed: read.find((one, i) => one.isError && missing[i] !== true),
  };
}

/** More lines than this look the same. */
const MOST_COMPARED = 10;

/** Several sweeps side by side; running ones are followed. */
export function ComparePage() {
  const { ids: asked = [] } = useSearch({ from: "/compare" });
  const ids = asked.slice(0, MOST_COMPARED);
  const { missing, sweeps, failed } = useQueries({ queries: ids.map((id) => sweepQuery(id)), combine: found });
  const gone = ids.filter((_, i) => missing[i]);
  const least = gone.length > 0 ? 1 : 2; // one that is left is shown, too

  return (
    <>
      <nav aria-label="Where you are" style={{ fontSize: 14 }}>
        <PageLink to="/sweeps">Sweeps</PageLink> /
      </nav>
      <PageTitle text="Compare sweeps" />
      {ids.length < 2 && <Note kind="plain">Choose two sweeps or more in the list of sweeps, then press Compare.</Note>}
      {failed && <ErrorNote error={failed.error} doing="Reading a sweep" onRetry={() => void failed.refetch()} />}
      {asked.length > ids.length && (
        <Note kind="warn">
          {count(ids.length, "sweep")} of {asked.length} are compared: no more fit side by side.
        </Note>
      )}
      {gone.map((id) => (
        <Note key={id} kind="warn">
          There is no such sweep any more: {id}.{" "}
          <PageLink to="/compare" search={{ ids: asked.filter((one) => one !== id) }}>
            Leave it out
          </PageLink>
        </Note>
      ))}
      {!failed && sweeps.length + gone.length < ids.length && <Loading what="the sweeps" />}
      {sweeps.length >= least && sweeps.length + gone.length === ids.length && <Comparison sweeps={sweeps} />}
    </>
  );
}

function lineText({ name, best }: BestLine): string {
  const last = best.at(-1);

  return `${name} ${last ? decimal(last[1]) : "no value"}`;
}

/** The read trials of each sweep; an unread one has none. */
function together(read: UseQueryResult<Part<Trial>>[]) {
  return {
    rows: read.map((one) => one.data?.rows ?? none),
    part: read.some((one) => one.data !== undefined && one.data.rows.length < (one.data.total ?? Infinity)),
    pending: read.some((one) => one.isPending),
    failed: read.find((one) => one.isError),
  };
}

function Comparison({ sweeps }: { sweeps: Sweep[] }) {
  const dark = useComputedColorScheme() === "dark";
  const p = palette(dark);
  const paused = usePaused();
  const cache = useQueryClient();
  const { rows, part, pending, failed } = useQueries({
    queries: sweeps.map((sweep) => ({
      ...chartTrialsQuery(sweep, !paused),
      // A sweep that ends is read once more, under another key: its line stays until
      // then.
      placeholderData: cache.getQueryData<Part<Trial>>(
        chartTrialsQuery({ ...sweep, state: "running" }, false).queryKey,
      ),
    })),
    combine: together,
  });
  const names = [...new Set(sweeps.flatMap(({ objective }) => objective?.metric ?? []))];
  const metrics = names.join(", ") || "value";
  const lines = useMemo(() => {
    const goals = new Set(sweeps.flatMap(({ objective }) => objective?.goal ?? []));

    return sweeps.map((sweep, i) => ({
      name: `${apart(sweeps)[i] ?? sweep.name}${goals.size > 1 && sweep.objective ? ` (${sweep.objective.goal})` : ""}`,
      best: history(rows[i] ?? none, sweep.objective?.goal ?? "maximize").best,
    }));
  }, [sweeps, rows]);
  const apartNames = useMemo(() => apart(sweeps), [sweeps]);
  const option = useMemo(() => bestOption(lines, metrics, palette(dark)), [lines, metrics, dark]);
  const running = sweeps.filter((sweep) => !ended(sweep.state)).length;

  return (
    <div style={{ display: "grid", gap: 16 }}>
      <Table
        label="Best values"
        heads={["Sweep", num("State"), "Metric", num("Best value"), num("In trial"), "Trials"]}
        rows={sweeps.map((sweep, i) => ({
          key: sweep.id,
          cells: [
            <PageLink to="/sweeps/$sweepId" params={{ sweepId: sweep.id }} fz="inherit">
              {lines[i]?.name}
            </PageLink>,
            <StateLabel look={sweepLooks[sweep.state]} />,
            sweep.objective ? `${sweep.objective.metric} (${sweep.objective.goal})` : "–",
            sweep.best ? decimal(sweep.best.value) : "–",
            sweep.best?.trial ?? "–",
            progressText(sweep.counts, ended(sweep.state)),
          ],
        }))}
      />
      {failed && <ErrorNote error={failed.error} doing="Reading trials" onRetry={() => void failed.refetch()} />}
      <ChartCard
        title="Best so far"
        note={
          <>
            <Legend items={lines.map((line, i) => ({ text: line.name, ...lineLook(p, i) }))} />
            {names.length > 1 ? `They have different metrics: ${metrics}.` : "By number of the trial."}
            {part && " Of sweeps with more than 10,000 trials these are the best and the newest."}
            {running > 0 &&
              ` ${count(running, "sweep goes", "sweeps go")} on${paused ? "; live updates are paused" : ""}.`}
          </>
        }
        twin={() => (
          <Table
            twin
            label="Best so far"
            heads={["Sweep", num("Trial"), num("Best value")]}
            rows={lines.flatMap((line, i) =>
              line.best.map(([n, v], j) => ({ key: `${i}/${j}`, cells: [line.name, String(n), decimal(v)] })),
            )}
          />
        )}
      >
        {pending && <Loading what="the trials" />}
        {!pending && !failed && lines.every((line) => line.best.length === 0) && <p>No trial has a value yet.</p>}
        <EChart
          option={option}
          height={300}
          label={`Best value so far of ${count(sweeps.length, "sweep")}: ${lines.map(lineText).join("; ")}`}
        />
      </ChartCard>
      <BestCurves sweeps={sweeps} names={apartNames} live={!paused} dark={dark} />
      <BestTrials sweeps={sweeps} names={apartNames} rows={rows} />
      <Specs sweeps={sweeps} />
    </div>
  );
}

function Specs({ sweeps }: { sweeps: Sweep[] }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => specLines(sweeps.map((sweep) => sweep.spec)), [sweeps]);
  const different = lines.filter((line) => line.differs);

  return (
    <section className="card" aria-label="Sweep files">
      <Checkbox
        label={`Show what is equal, too (${lines.length - different.length})`}
        checked={all}
        onChange={(event) => setAll(event.currentTarget.checked)}
        mb="sm"
      />
      {different.length === 0 && <p>The files are equal.</p>}
      <Table
        label="Sweep files side by side"
        heads={["Field", ...apart(sweeps)]}
        rows={(all ? lines : different).map((line) => ({
          key: line.path,
          cells: [
            <>
              <span className="mono">{line.path}</span>
              {all && line.differs && <strong> (differs)</strong>}
            </>,
            ...line.values.map((value) => <span className="mono break">{value}</span>),
          ],
        }))}
      />
    </section>
  );
}
