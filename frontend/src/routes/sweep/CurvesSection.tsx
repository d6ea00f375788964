import { Group, NativeSelect, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, useMemo, useState } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { num, Table } from "@/components/Table";
import { count, decimal, grouped } from "@/lib/format";
import { smoothed } from "@/lib/smooth";
import { ended, trialLooks } from "@/lib/states";
import type { Line } from "@/plots/CurvesChart";
import { lineLook, MOST_LOOKS, type LineLook } from "@/plots/lineLooks";
import { palette } from "@/plots/palette";
import type { Chosen } from "@/routes/sweep/useChosen";
import { curvesQuery, metricNamesQuery, type Curve } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

const CurvesChart = lazy(() => import("@/plots/CurvesChart"));

interface Props {
  sweep: Sweep;
  chosen: Chosen;
  dark: boolean;
  live: boolean;
}

/** The trials' reported values during their runs: of the chosen ones, or of the best and the running ones. */
export function CurvesSection({ sweep, chosen, dark, live }: Props) {
  const { metric: picked = "" } = useSearch({ from: "/sweeps/$sweepId" });
  const navigate = useNavigate({ from: "/sweeps/$sweepId" });
  const names = useQuery(metricNamesQuery(sweep, live));
  const objective = sweep.objective?.metric ?? "";
  const known = useMemo(() => namesOf(names.data?.data ?? [], [objective, picked]), [names.data, objective, picked]);
  const name = [picked, objective, ...known].find((one) => known.includes(one)) ?? "";
  const curves = useQuery(curvesQuery(sweep, name, chosen.text, live));
  const data = useMemo(() => curves.data?.data ?? [], [curves.data]);
  const best = sweep.best?.trial;
  const [log, setLog] = useState(false);
  const [smoothing, setSmoothing] = useState("0");
  const looks = useMemo(() => looksOf(chosen.set, best, dark), [chosen.set, best, dark]);
  const lines = useMemo(
    () => linesOf(data, looks, palette(dark).run, Number(smoothing), log),
    [data, looks, dark, smoothing, log],
  );
  const [had, setHad] = useState(false); // a choice of silent trials takes no card away
  if (!had && data.some(reported)) setHad(true);

  if (names.isSuccess && names.data.data.length === 0 && (!had || name === "")) return null;
  const failed = names.isError ? names : curves;

  return (
    <ChartCard
      title="While they ran"
      note={
        <>
          {curves.data && whose(data, chosen.set.size, sweep.objective !== undefined)}{" "}
          {chosen.set.size === 0 && lines.some((line) => line.strong) && "The best is in colour. "}
          {thinned(data, smoothing !== "0")}
          {notFinite(data)}
          {log && data.some((curve) => curve.values.some((v) => v <= 0)) && "Values of 0 and less are not drawn. "}
          {chosen.set.size > 0 && (
            <Legend
              items={lines
                .filter((line) => line.strong)
                .map((line) => ({
                  text: `trial ${line.trial}`,
                  color: line.color,
                  dashName: looks.get(line.trial)?.dashName ?? "",
                }))}
            />
          )}
        </>
      }
      twin={() => (
        <Table
          twin
          label={`${name} of each trial`}
          heads={["Trial", "State", "Points", "Last step", "Last value", "Lowest", "Highest", "Not finite"].map(num)}
          rows={data.map((curve) => ({
            key: String(curve.trial),
            trial: curve.trial,
            cells: [
              String(curve.trial),
              trialLooks[curve.state].text,
              grouped(curve.total),
              String(curve.steps.at(-1) ?? "–"),
              number(curve.values.at(-1)),
              number(curve.values.length > 0 ? curve.values.reduce((a, b) => Math.min(a, b)) : undefined),
              number(curve.values.length > 0 ? curve.values.reduce((a, b) => Math.max(a, b)) : undefined),
              curve.not_finite === 0 ? "–" : `${grouped(curve.not_finite)}, from step ${curve.first_not_finite_step}`,
            ],
          }))}
          chosen={chosen.set}
          onToggle={chosen.toggle}
        />
      )}
    >
      <Group gap="md" mb="sm" align="flex-end">
        <NativeSelect
          label="Metric"
          size="xs"
          style={{ maxWidth: 260 }}
          data={known}
          value={name}
          onChange={(event) => {
            const metric = event.currentTarget.value;
            void navigate({
              to: "/sweeps/$sweepId",
              search: (before) => ({ ...before, metric }),
              replace: true,
              resetScroll: false,
            });
          }}
        />
        <NativeSelect
          label="Smoothing"
          size="xs"
          data={smoothings}
          value={smoothing}
          onChange={(event) => setSmoothing(event.currentTarget.value)}
        />
        <Switch
          label="Log axis"
          size="xs"
          mb={6}
          checked={log}
          onChange={(event) => setLog(event.currentTarget.checked)}
        />
      </Group>
      {failed.isError && (
        <ErrorNote error={failed.error} doing="Reading curves" onRetry={() => void failed.refetch()} />
      )}
      {!failed.isError && curves.data === undefined && <Loading what="curves" />}
      {curves.data && !data.some(reported) && (
        <p>None of these trials {ended(sweep.state) ? "reported it" : "has reported it yet"}.</p>
      )}
      {lines.length > 0 && <CurvesChart lines={lines} metric={name} log={log} dark={dark} />}
    </ChartCard>
  );
}

/** namesOf are the metrics to choose from. The server reads the newest trials, which may not have reported a wanted one yet. */
function namesOf(found: { name: string }[], wanted: string[]): string[] {
  return [...new Set([...found.map((one) => one.name), ...wanted.filter((name) => name !== "")])];
}

/** whose says which trials the curves show. */
function whose(curves: Curve[], chosen: number, judged: boolean): string {
  if (chosen > 0) {
    return `Of ${count(chosen, "chosen trial")} ${grouped(curves.filter(reported).length)} reported it.`;
  }

  return `${count(curves.length, "trial")}: ${judged ? "the 50 best" : "the first 50 that ended"}, and the first 50 that run.`;
}

function reported(curve: Curve): boolean {
  return curve.total + curve.not_finite > 0;
}

/** smoothings are the weights of TensorBoard's slider that people use. */
const smoothings = [
  { value: "0", label: "none" },
  { value: "0.6", label: "0.6" },
  { value: "0.9", label: "0.9" },
  { value: "0.99", label: "0.99" },
];

/** looksOf are the looks of lines that stand out: those of the chosen trials, or of the best one. */
function looksOf(chosen: ReadonlySet<number>, best: number | undefined, dark: boolean): Map<number, LineLook> {
  const p = palette(dark);
  if (chosen.size > 0) return new Map([...chosen].slice(0, MOST_LOOKS).map((trial, i) => [trial, lineLook(p, i)]));

  return new Map(best === undefined ? [] : [[best, { ...lineLook(p, 0), color: p.pick }]]);
}

function linesOf(curves: Curve[], looks: Map<number, LineLook>, pale: string, weight: number, log: boolean): Line[] {
  return curves.flatMap((curve) => {
    const kept = curve.values.flatMap((value, i) => (log && value <= 0 ? [] : [i]));
    if (kept.length === 0) return [];
    const reported = kept.map((i) => curve.values[i] ?? 0);

    return {
      trial: curve.trial,
      steps: kept.map((i) => curve.steps[i] ?? 0),
      values: smoothed(reported, weight),
      reported,
      color: pale,
      dash: [],
      strong: looks.has(curve.trial),
      ...looks.get(curve.trial),
    };
  });
}

function thinned(curves: Curve[], smooth: boolean): string {
  if (!curves.some((curve) => curve.total > curve.steps.length)) return "";

  return `Long curves are thinned so that their peaks stay. ${smooth ? "They are smoothed over the points drawn, not over all. " : ""}`;
}

function notFinite(curves: Curve[]): string {
  const odd = curves.filter((curve) => curve.not_finite > 0);

  return odd.length > 0 ? `${count(odd.length, "trial")} reported values that are not finite; they are not drawn.` : "";
}

function number(n: number | undefined): string {
  return n === undefined ? "–" : decimal(n);
}
