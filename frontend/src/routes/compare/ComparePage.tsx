import { Checkbox, useComputedColorScheme } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { lazy, useMemo, useState } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { ErrorNote } from "@/components/ErrorNote";
import { PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { PageTitle } from "@/components/PageTitle";
import { num, Table } from "@/components/Table";
import { specLines } from "@/lib/compare";
import { count, decimal } from "@/lib/format";
import { history } from "@/lib/overview/history";
import { sweepLooks } from "@/lib/states";
import { bestColors, bestOption } from "@/plots/bestOption";
import { palette } from "@/plots/palette";
import { chartTrialsQuery } from "@/services/overview";
import { sweepQuery, type Sweep } from "@/services/sweeps";

const EChart = lazy(() => import("@/plots/EChart"));

/** Several sweeps side by side. */
export function ComparePage() {
  const { ids = [] } = useSearch({ from: "/compare" });
  const read = useQueries({ queries: ids.map((id) => sweepQuery(id)) });
  const failed = read.find((one) => one.isError);
  const sweeps = read.flatMap((one) => (one.data ? [one.data] : []));

  return (
    <>
      <nav aria-label="Where you are" style={{ fontSize: 14 }}>
        <PageLink to="/sweeps">Sweeps</PageLink> /
      </nav>
      <PageTitle text="Compare sweeps" />
      {ids.length < 2 && <Note kind="plain">Choose two sweeps or more in the list of sweeps, then press Compare.</Note>}
      {failed && <ErrorNote error={failed.error} doing="Reading a sweep" onRetry={() => void failed.refetch()} />}
      {!failed && sweeps.length < ids.length && <Loading what="the sweeps" />}
      {ids.length > 1 && sweeps.length === ids.length && <Comparison sweeps={sweeps} />}
    </>
  );
}

function Comparison({ sweeps }: { sweeps: Sweep[] }) {
  const p = palette(useComputedColorScheme() === "dark");
  const colors = bestColors(p);
  const trials = useQueries({ queries: sweeps.map((sweep) => chartTrialsQuery(sweep, false)) });
  const metrics = [...new Set(sweeps.map((sweep) => sweep.objective?.metric ?? "value"))];
  const lines = sweeps.map((sweep, i) => ({
    name: sweep.name,
    best: history(trials[i]?.data?.rows ?? [], sweep.objective?.goal ?? "maximize").best,
  }));
  const failed = trials.find((one) => one.isError);

  return (
    <div style={{ display: "grid", gap: 16 }}>
      <Table
        label="Best values"
        heads={["Sweep", num("State"), "Metric", num("Best value"), num("In trial"), num("Trials done")]}
        rows={sweeps.map((sweep) => ({
          key: sweep.id,
          cells: [
            <PageLink to="/sweeps/$sweepId" params={{ sweepId: sweep.id }}>
              {sweep.name}
            </PageLink>,
            sweepLooks[sweep.state].text,
            sweep.objective ? `${sweep.objective.metric} (${sweep.objective.goal})` : "–",
            sweep.best ? decimal(sweep.best.value) : "–",
            sweep.best?.trial ?? "–",
            sweep.counts.succeeded,
          ],
        }))}
      />
      {failed && <ErrorNote error={failed.error} doing="Reading trials" onRetry={() => void failed.refetch()} />}
      <ChartCard
        title="Best so far"
        note={
          <>
            <Legend items={lines.map((line, i) => ({ text: line.name, color: colors[i % colors.length] ?? "" }))} />
            {metrics.length > 1 ? `They have different metrics: ${metrics.join(", ")}.` : "By number of the trial."}
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
        <EChart
          option={bestOption(lines, metrics.join(", "), p)}
          height={300}
          label={`Best value so far of ${count(sweeps.length, "sweep")}: ${sweeps.map((sweep) => sweep.name).join(", ")}`}
        />
      </ChartCard>
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
        heads={["Field", ...sweeps.map((sweep) => sweep.name)]}
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
