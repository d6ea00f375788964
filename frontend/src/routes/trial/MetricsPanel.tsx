import { Title, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { num, right, Table } from "@/components/Table";
import { count, decimal, grouped } from "@/lib/format";
import { series, table, type Series } from "@/lib/metrics";
import type { ChartLine } from "@/plots/LineChart";
import { usePaused } from "@/routes/usePaused";
import { live, metricsQuery, MOST_POINTS, type Attempt } from "@/services/trials";

const LineChart = lazy(() => import("@/plots/LineChart"));

interface Props {
  sweepId: string;
  number: number;
  attempt: Attempt;
}

export function MetricsPanel({ sweepId, number, attempt }: Props) {
  const dark = useComputedColorScheme() === "dark";
  const paused = usePaused();
  const metrics = useQuery(metricsQuery(sweepId, number, attempt.id, live(attempt) && !paused));
  const lines = useMemo(() => series(metrics.data?.data ?? []), [metrics.data]);

  const drawn = useMemo(() => lines.map(({ name, values }): ChartLine[] => [{ name, values, color: "run" }]), [lines]);

  return (
    <section aria-label="Metrics">
      <Title order={2} mb="xs">
        Metrics
      </Title>
      {metrics.isPending && <Loading what="metrics" />}
      {metrics.isError && (
        <ErrorNote error={metrics.error} doing="Reading metrics" onRetry={() => void metrics.refetch()} />
      )}
      {metrics.isSuccess && lines.length === 0 && (
        <div className="card">{live(attempt) ? "It has reported no metric yet." : "It reported no metric."}</div>
      )}
      {metrics.data && metrics.data.data.length >= MOST_POINTS && (
        <Note kind="warn">
          Only the first {grouped(MOST_POINTS)} points are shown, by name and step. Later metrics may be missing.
        </Note>
      )}
      {lines.length > 0 && (
        <>
          <div className="charts">
            {lines.map((line, i) => (
              <figure key={line.name} className="card" style={{ margin: 0 }}>
                <figcaption className="mono">{line.name}</figcaption>
                <Suspense fallback={<Loading what="the chart" />}>
                  <LineChart
                    label={`${line.name} over ${line.steps.length} steps; the table has the values`}
                    x="step"
                    y="number"
                    xs={line.steps}
                    lines={drawn[i] ?? []}
                    dark={dark}
                  />
                </Suspense>
              </figure>
            ))}
          </div>
          <MetricTable lines={lines} />
        </>
      )}
    </section>
  );
}

function MetricTable({ lines }: { lines: Series[] }) {
  const rows = useMemo(() => table(lines), [lines]);
  const shown = rows.slice(-500);

  return (
    <details style={{ marginTop: 8 }}>
      <summary>As a table ({count(rows.length, "step")})</summary>
      {shown.length < rows.length && <p>The last {shown.length} steps.</p>}
      <Table
        label="Metrics by step"
        heads={[num("Step"), ...lines.map((line) => right(line.name))]}
        rows={shown.map((row) => ({
          key: String(row.step),
          cells: [
            row.step,
            ...lines.map((_, i) => {
              const v = row.values[i];

              return v === undefined ? "–" : v === null ? "not finite" : decimal(v);
            }),
          ],
        }))}
      />
    </details>
  );
}
