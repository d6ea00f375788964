import { useQueries, type UseQueryResult } from "@tanstack/react-query";
import { lazy, useMemo } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { num, Table } from "@/components/Table";
import { decimal } from "@/lib/format";
import type { Line } from "@/plots/CurvesChart";
import { lineLook } from "@/plots/lineLooks";
import { palette } from "@/plots/palette";
import { curvesQuery, type Curve } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

const CurvesChart = lazy(() => import("@/plots/CurvesChart"));

interface Props {
  sweeps: Sweep[];
  /** names tell the sweeps apart, in their order. */
  names: string[];
  live: boolean;
  dark: boolean;
}

/** The curve of each sweep's best trial, of sweeps that are judged by one metric: others have no axis in common. */
export function BestCurves({ sweeps, names, live, dark }: Props) {
  const metric = sweeps[0]?.objective?.metric ?? "";
  const common = metric !== "" && sweeps.every((sweep) => sweep.objective?.metric === metric);
  const curves = useQueries({
    queries: sweeps.map((sweep) => ({
      ...curvesQuery(sweep, metric, String(sweep.best?.trial ?? ""), live),
      enabled: common && sweep.best !== undefined,
    })),
    combine: first,
  });
  const lines = useMemo(() => {
    const p = palette(dark);

    return curves.flatMap((curve, i): (Line & { dashName: string })[] =>
      curve === undefined || curve.steps.length === 0
        ? []
        : [
            {
              ...lineLook(p, i),
              name: `${names[i] ?? ""}, trial ${curve.trial}`,
              trial: curve.trial,
              steps: curve.steps,
              values: curve.values,
              reported: curve.values,
              strong: true,
            },
          ],
    );
  }, [curves, names, dark]);

  if (!lines.some((line) => line.steps.length > 1)) return null;

  return (
    <ChartCard
      title="Curves of the best trials"
      note={
        <Legend items={lines.map((line) => ({ text: line.name ?? "", color: line.color, dashName: line.dashName }))} />
      }
      twin={() => (
        <Table
          twin
          label={`${metric} of the best trials`}
          heads={["Trial", num("Last step"), num("Last value")]}
          rows={lines.map((line) => ({
            key: line.name ?? "",
            cells: [line.name, String(line.steps.at(-1)), decimal(line.values.at(-1) ?? NaN)],
          }))}
        />
      )}
    >
      <CurvesChart lines={lines} metric={metric} log={false} dark={dark} />
    </ChartCard>
  );
}

function first(read: UseQueryResult<{ data: Curve[] }>[]): (Curve | undefined)[] {
  return read.map((one) => one.data?.data[0]);
}
