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
import { TwinTable } from "@/components/TwinTable";
import { specLines } from "@/lib/compare";
import { count, decimal } from "@/lib/format";
import { history } from "@/lib/overview/history";
import { sweepLooks } from "@/lib/states";
import { bestColors, bestOption } from "@/plots/bestOption";
import { palette } from "@/plots/palette";
import { chartTrialsQuery } from "@/services/overview";
import { sweepQuery, type Sweep } from "@/services/sweeps";

const EChart = lazy(() => import("@/plots/EChart"));
const noTrial: ReadonlySet<number> = new Set();

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
      <div className="tablewrap">
        <table className="table" aria-label="Best values">
          <thead>
            <tr>
              {["Sweep", "State", "Metric", "Best value", "In trial", "Trials done"].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sweeps.map((sweep) => (
              <tr key={sweep.id}>
                <td>
                  <PageLink to="/sweeps/$sweepId" params={{ sweepId: sweep.id }}>
                    {sweep.name}
                  </PageLink>
                </td>
                <td>{sweepLooks[sweep.state].text}</td>
                <td>{sweep.objective ? `${sweep.objective.metric} (${sweep.objective.goal})` : "–"}</td>
                <td className="num">{sweep.best ? decimal(sweep.best.value) : "–"}</td>
                <td className="num">{sweep.best?.trial ?? "–"}</td>
                <td className="num">{sweep.counts.succeeded}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
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
          <TwinTable
            label="Best so far"
            heads={["Sweep", "Trial", "Best value"]}
            rows={lines.flatMap((line, i) =>
              line.best.map(([n, v], j) => ({ key: `${i}/${j}`, cells: [line.name, String(n), decimal(v)] })),
            )}
            chosen={noTrial}
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
      <div className="tablewrap">
        <table className="table" aria-label="Sweep files side by side">
          <thead>
            <tr>
              <th scope="col">Field</th>
              {sweeps.map((sweep) => (
                <th key={sweep.id} scope="col">
                  {sweep.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(all ? lines : different).map((line) => (
              <tr key={line.path}>
                <td className="mono">
                  {line.path}
                  {all && line.differs && <strong> (differs)</strong>}
                </td>
                {line.values.map((value, i) => (
                  <td key={sweeps[i]?.id} className="mono break">
                    {value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
