import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { PageTitle } from "@/components/PageTitle";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { VirtualTable, type Column } from "@/components/VirtualTable";
import { ago, bytes, duration, zoned } from "@/lib/format";
import { probeLines, programText, sourceText, valuesText, type ProbeLine } from "@/lib/probes";
import { useNow } from "@/lib/useNow";
import { probesQuery, type Footprint } from "@/services/probes";

export function ProbesPage() {
  const list = useInfiniteQuery(probesQuery);
  const now = useNow(10_000);
  const lines = useMemo(() => probeLines(list.data?.pages.flatMap((page) => page.data) ?? []), [list.data]);
  const gpus = lines.some((line) => line.footprint.device_class !== "cpu");
  const columns = useMemo(() => columnsAt(now, gpus), [now, gpus]);
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);

  return (
    <>
      <PageTitle text="Probes" />
      <p>
        What was measured of each memory shape: of the image, command and values that decide how much memory a trial
        needs.
      </p>
      {list.isPending && <Loading what="probes" />}
      {list.isError && <ErrorNote error={list.error} doing="Reading probes" onRetry={() => void list.refetch()} />}
      {list.isSuccess && lines.length === 0 && (
        <div className="card">
          Nothing was measured yet. The first trial of each shape measures it.{" "}
          <Link to="/sweeps/new">Write a sweep</Link>
        </div>
      )}
      {lines.length > 0 && (
        <VirtualTable label="Probes" columns={columns} rows={lines} rowKey={(line) => line.key} onEnd={onEnd} />
      )}
    </>
  );
}

/** size is a column of bytes; 0 and absent = not measured. */
function size(key: string, header: string, of: (footprint: Footprint) => number | undefined): Column<ProbeLine> {
  return {
    key,
    header,
    className: "num right",
    cell: ({ footprint }) => ((of(footprint) ?? 0) === 0 ? "–" : bytes(of(footprint) ?? 0)),
  };
}

function columnsAt(now: number, gpus: boolean): Column<ProbeLine>[] {
  return [
    {
      key: "values",
      header: "Shape",
      cell: ({ probe }) => (
        <>
          <Link to="/probes/$shapeKey" params={{ shapeKey: probe.shape_key }}>
            <span className="clip">{valuesText(probe)}</span>
          </Link>
          <span className="clip small" title={programText(probe)}>
            {programText(probe)}
          </span>
        </>
      ),
    },
    { key: "class", header: "On", cell: ({ footprint }) => footprint.device_class },
    ...(gpus
      ? [
          size("gpu", "GPU peak", (footprint) => footprint.device_peak_bytes),
          size("gpu-reserved", "GPU, next reserves", (footprint) => footprint.device_reserved_bytes),
        ]
      : []),
    size("peak", "Peak", (footprint) => footprint.memory_peak_bytes),
    size("reserved", "Next reserves", (footprint) => footprint.reserved_bytes),
    {
      key: "duration",
      header: "Duration",
      className: "num right",
      cell: ({ footprint }) => (footprint.samples === 0 ? "–" : duration(footprint.duration_seconds)),
    },
    { key: "source", header: "Source", className: "num", cell: ({ footprint }) => sourceText(footprint.source) },
    { key: "samples", header: "Attempts", className: "num right", cell: ({ footprint }) => footprint.samples },
    {
      key: "at",
      header: "Measured",
      className: "num",
      cell: ({ footprint }) => <time title={zoned(footprint.measured_at)}>{ago(footprint.measured_at, now)}</time>,
    },
  ];
}
