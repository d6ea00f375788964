import { SegmentedControl, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { num, right, Table } from "@/components/Table";
import { bytes, duration, moment, percent } from "@/lib/format";
import { rangeOf, told, usage, type Range, type Usage } from "@/lib/usage";
import type { ChartLine } from "@/plots/LineChart";
import { usageQuery, type Host, type UsagePoint } from "@/services/hosts";

const LineChart = lazy(() => import("@/plots/LineChart"));

const spans = [
  { value: "1", label: "1 h" },
  { value: "6", label: "6 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 days" },
];

interface Props {
  host: Host;
  live: boolean;
}

/** How full a machine and its GPUs were. It is read once it is opened. */
export function HostHistory({ host, live }: Props) {
  const [open, setOpen] = useState(false);

  return (
    <details style={{ marginTop: 12 }} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Over time</summary>
      {open && <Opened host={host} live={live} />}
    </details>
  );
}

function Opened({ host, live }: Props) {
  const [hours, setHours] = useState("6");
  const read = useQuery(usageQuery(host.id, Number(hours), live));
  const { data, dataUpdatedAt } = read;
  const range = useMemo(
    () =>
      data &&
      rangeOf(
        [data.points, ...data.devices.map((device) => device.points)],
        data.interval_seconds,
        Number(hours),
        dataUpdatedAt,
      ),
    [data, hours, dataUpdatedAt],
  );

  return (
    <div style={{ marginTop: 8 }}>
      <SegmentedControl
        size="xs"
        aria-label={`How far back, for ${host.name}`}
        data={spans}
        value={hours}
        onChange={setHours}
      />
      {read.isPending && <Loading what="how full it was" />}
      {read.isError && (
        <ErrorNote error={read.error} doing="Reading how full it was" onRetry={() => void read.refetch()} />
      )}
      {data && data.points.length === 0 && (
        <p>Nothing is known of this time. A point comes with each minute in which its worker answers.</p>
      )}
      {data && range && data.points.length > 0 && (
        <>
          <p className="chartnote">
            The most in each {duration(data.interval_seconds)}; in a gap the worker told nothing. What attempts hold and
            what others use is measured.
          </p>
          <div className="charts">
            <Track
              name={`Memory of ${host.name}`}
              points={data.points}
              every={data.interval_seconds}
              range={range}
              gpu={false}
            />
            {data.devices.map((device) => (
              <Track
                key={device.id}
                name={`Memory of ${nameOf(host, device.id)}`}
                points={device.points}
                every={data.interval_seconds}
                range={range}
                gpu
              />
            ))}
          </div>
        </>
      )}
    </div>
  );
}

/** nameOf is the model of a GPU with its id; a GPU that the machine has no longer has its id alone. */
function nameOf(host: Host, id: string): string {
  const model = host.devices.find((device) => device.id === id)?.model;

  return model === undefined ? id : `${model} (${id})`;
}

interface TrackProps {
  name: string;
  points: UsagePoint[];
  /** every is the interval of a point, in seconds. */
  every: number;
  /** range is that of all tracks. */
  range: Range;
  gpu: boolean;
}

/** The memory of a machine or a GPU over time, the activity of a GPU, and the same as a table. */
function Track({ name, points, every, range, gpu }: TrackProps) {
  const dark = useComputedColorScheme() === "dark";
  const [open, setOpen] = useState(false);
  const rows = useMemo(() => usage(points, every, range), [points, every, range]);
  const xs = useMemo(() => rows.map((row) => row.second), [rows]);
  const memory = useMemo(
    (): ChartLine[] => [
      { name: "reserved", values: rows.map((row) => row.reserved), color: "run" },
      { name: "held by attempts", values: rows.map((row) => row.held), color: "done" },
      { name: "used by others", values: rows.map((row) => row.others), color: "warn" },
      { name: "in all", values: rows.map((row) => row.total), color: "ink", dashed: true },
    ],
    [rows],
  );
  const busy = useMemo((): ChartLine[] => [{ name: "busy", values: rows.map((row) => row.sm), color: "run" }], [rows]);
  const seen = gpu && rows.some((row) => row.sm !== null);

  return (
    <figure style={{ margin: 0, minWidth: 0 }}>
      <figcaption>{name}</figcaption>
      <Suspense fallback={<Loading what="the chart" />}>
        <LineChart
          label={`${name} over time; the table has the figures`}
          x="clock"
          y="bytes"
          xs={xs}
          lines={memory}
          dark={dark}
        />
        {seen && (
          <LineChart
            label={`SM activity, ${name.replace("Memory of ", "")}; the table has the figures`}
            x="clock"
            y="share"
            xs={xs}
            lines={busy}
            dark={dark}
          />
        )}
      </Suspense>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>View as table</summary>
        {open && (
          <Table
            twin
            label={`${name} by time`}
            heads={[
              num("From"),
              ...["Attempts", "Reserved", "Held", "Used by others", "In all", ...(gpu ? ["SMs busy"] : [])].map(right),
            ]}
            rows={told(rows)
              .toReversed()
              .map((row) => ({ key: String(row.second), cells: [moment(iso(row.second)), ...cells(row, gpu)] }))}
          />
        )}
      </details>
    </figure>
  );
}

const iso = (second: number) => new Date(second * 1000).toISOString();

function cells(row: Usage, gpu: boolean): string[] {
  const size = (n: number | null) => (n === null ? "not measured" : bytes(n));

  return [
    row.attempts === null ? "not known" : String(row.attempts),
    ...[row.reserved, row.held, row.others, row.total].map(size),
    ...(gpu ? [row.sm === null ? "not measured" : percent(row.sm)] : []),
  ];
}
