import { useQuery } from "@tanstack/react-query";
import { lazy, useMemo } from "react";
import { ChartCard, Legend } from "@/components/ChartCard";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { StaleNote } from "@/components/StaleNote";
import { num, Table } from "@/components/Table";
import { count, duration, grouped, moment } from "@/lib/format";
import { lanes } from "@/lib/overview/lanes";
import { palette } from "@/plots/palette";
import { timelineHeight, timelineOption } from "@/plots/timelineOption";
import { useNow } from "@/lib/useNow";
import type { Chosen } from "@/routes/sweep/useChosen";
import { hostsQuery } from "@/services/hosts";
import { chartAttemptsQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

const EChart = lazy(() => import("@/plots/EChart"));

interface Props {
  sweep: Sweep;
  chosen: Chosen;
  dark: boolean;
  live: boolean;
}

/** Which attempt ran where and when. */
export function TimelineSection({ sweep, chosen, dark, live }: Props) {
  const p = palette(dark);
  const read = useQuery(chartAttemptsQuery(sweep, live));
  const hosts = useQuery(hostsQuery(false));
  const now = useNow(5000);
  const attempts = useMemo(() => read.data?.rows ?? [], [read.data]);
  const runs = attempts.some((attempt) => attempt.finished_at === undefined);
  const until = runs ? now : 0; // a sweep that has ended is not drawn again as time goes by
  const all = useMemo(
    () => lanes(attempts, new Map(hosts.data?.data.map((host) => [host.id, host.name])), until),
    [attempts, hosts.data, until],
  );
  const option = useMemo(() => timelineOption(all, chosen.set, p), [all, chosen.set, p]);

  if (read.isPending) return <Loading what="attempts" />;
  if (read.data === undefined) {
    return <ErrorNote error={read.error} doing="Reading attempts" onRetry={() => void read.refetch()} />;
  }
  if (all.bars.length === 0) return null;

  return (
    <ChartCard
      title="Where and when"
      note={
        <>
          <Legend
            items={[
              { text: "finished", color: p.done },
              { text: "running", color: p.run },
              { text: "out of memory, repeated with more", color: p.warn },
              { text: "failed", color: p.bad },
              { text: "starting, canceled or stopped early", color: p.wait },
            ]}
          />
          Attempts by host and GPU. Attempts at one time are in rows below each other.
          {read.data.total === undefined && ` The first ${grouped(attempts.length)} attempts by trial.`}
        </>
      }
      twin={() => (
        <Table
          twin
          label="Attempts by place and start"
          heads={["Trial", "Attempt", "Where", "Start", "Duration", "End"].map(num)}
          rows={all.bars.map((bar) => ({
            key: `${bar.trial}/${bar.attempt}`,
            trial: bar.trial,
            cells: [
              String(bar.trial),
              String(bar.attempt),
              bar.place,
              moment(new Date(bar.from).toISOString()),
              duration((bar.to - bar.from) / 1000),
              bar.text,
            ],
          }))}
          chosen={chosen.set}
          onToggle={chosen.toggle}
        />
      )}
    >
      <StaleNote query={read} doing="Reading attempts again" />
      <EChart
        option={option}
        height={timelineHeight(all.rows.length)}
        label={`Timeline of ${count(all.bars.length, "attempt")} on ${count(all.rows.filter((row) => row !== "").length, "host or GPU", "hosts and GPUs")}`}
        onPick={chosen.toggle}
      />
    </ChartCard>
  );
}
