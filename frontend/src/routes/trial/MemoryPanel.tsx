import { Title, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, useMemo } from "react";
import { ChartCard } from "@/components/ChartCard";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { num, right, Table } from "@/components/Table";
import { bytes, duration, percent } from "@/lib/format";
import { held, type Held } from "@/lib/memory";
import type { ChartLine } from "@/plots/LineChart";
import { usePaused } from "@/routes/usePaused";
import { live, memoryQuery, type Attempt, type AttemptMemory } from "@/services/trials";

const LineChart = lazy(() => import("@/plots/LineChart"));
const TITLE = "Memory and activity over time";

interface Props {
  sweepId: string;
  number: number;
  attempt: Attempt;
}

/** An attempt's memory on its machine and its GPU over time, beside its reservation. */
export function MemoryPanel({ sweepId, number, attempt }: Props) {
  const paused = usePaused();
  const memory = useQuery(memoryQuery(sweepId, number, attempt.id, live(attempt) && !paused));

  if (memory.data && memory.data.points.length > 0) {
    return (
      <>
        {memory.isError && (
          <ErrorNote error={memory.error} doing="Reading memory again" onRetry={() => void memory.refetch()} />
        )}
        <Measured memory={memory.data} attempt={attempt} />
      </>
    );
  }

  return (
    <section className="card" aria-label={TITLE}>
      <Title order={2} mb="xs">
        {TITLE}
      </Title>
      {memory.isPending && <Loading what="memory" />}
      {memory.isError && (
        <ErrorNote error={memory.error} doing="Reading memory" onRetry={() => void memory.refetch()} />
      )}
      {memory.isSuccess && nothing(attempt)}
    </section>
  );
}

/** nothing is the known reason when there is no point. */
function nothing(attempt: Attempt): string {
  return live(attempt)
    ? "Nothing was measured yet. A running attempt's newest figures come within 10 s."
    : "Nothing was measured. The attempt ended before the first figure.";
}

interface Figure {
  name: string;
  unit: "bytes" | "share";
  lines: ChartLine[];
}

function Measured({ memory, attempt }: { memory: AttemptMemory; attempt: Attempt }) {
  const dark = useComputedColorScheme() === "dark";
  const start = attempt.started_at ?? attempt.placed_at;
  const rows = useMemo(() => held(memory, start), [memory, start]);
  const { xs, figures, missing } = useMemo(() => drawn(memory, rows), [memory, rows]);
  const interval = duration(memory.interval_seconds);
  const higher = [
    { name: "machine memory", peak: memory.host_peak_bytes ?? 0, seen: rows.map((row) => row.host ?? 0) },
    { name: "GPU memory", peak: memory.device_peak_bytes ?? 0, seen: rows.map((row) => row.device ?? 0) },
  ].filter(({ peak, seen }) => peak > Math.max(...seen));

  return (
    <ChartCard
      title={TITLE}
      note={
        <>
          Attempt {attempt.number}: the most in each {interval} since its start; a gap was not measured. Machine memory
          is without the page cache.
          {missing.length > 0 && ` Not measured: ${missing.join(", ")}.`}
          {higher.map(({ name, peak }) => ` The recorded peak of ${name}, ${bytes(peak)}, fell between two points.`)}
        </>
      }
      twin={() => (
        <Table
          twin
          label="Memory and activity by time"
          heads={[num("Since start"), ...figures.map((figure) => right(figure.name))]}
          rows={rows.map((row, i) => ({
            key: String(row.second),
            cells: [
              row.second === 0 ? "0 s" : duration(row.second),
              ...figures.map(({ unit, lines }) => {
                const n = lines[0]?.values[i] ?? null;

                return n === null ? "not measured" : unit === "bytes" ? bytes(n) : percent(n);
              }),
            ],
          }))}
        />
      )}
    >
      <div className="charts">
        {figures.map(({ name, unit, lines }) => (
          <figure key={name} style={{ margin: 0, minWidth: 0 }}>
            <figcaption>{name}</figcaption>
            <LineChart
              label={`${name} over ${duration(xs.at(-1) ?? 0)}; the table has the figures`}
              x="seconds"
              y={unit}
              xs={xs}
              lines={lines}
              dark={dark}
            />
          </figure>
        ))}
      </div>
    </ChartCard>
  );
}

/** drawn are the charts with a figure, and the names of empty ones that could have one. */
function drawn(memory: AttemptMemory, rows: Held[]): { xs: number[]; figures: Figure[]; missing: string[] } {
  const figure = (name: string, unit: Figure["unit"], values: (number | null)[], reserved: number): Figure => ({
    name,
    unit,
    lines: [
      { name: unit === "bytes" ? "held" : "busy", values, color: "run" },
      ...(reserved > 0
        ? [{ name: "reserved (dashed)", values: values.map(() => reserved), color: "ink" as const, dashed: true }]
        : []),
    ],
  });
  const all = [
    figure(
      "Machine memory",
      "bytes",
      rows.map((row) => row.host),
      memory.host_reserved_bytes,
    ),
  ];
  if (memory.device_reserved_bytes > 0 || rows.some((row) => row.device !== null)) {
    all.push(
      figure(
        "GPU memory",
        "bytes",
        rows.map((row) => row.device),
        memory.device_reserved_bytes,
      ),
      figure(
        "SM activity",
        "share",
        rows.map((row) => row.sm),
        0,
      ),
    );
  }
  const has = (one: Figure) => one.lines[0]?.values.some((n) => n !== null);

  return {
    xs: rows.map((row) => row.second),
    figures: all.filter(has),
    missing: all.filter((one) => !has(one)).map((one) => one.name),
  };
}
