import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { StagesCard } from "@/components/StagesCard";
import { StaleNote } from "@/components/StaleNote";
import { savedSeconds, stageBoxes } from "@/lib/stages";
import { stagesQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

/** The stages of a sweep that has some. */
export function StagesSection({ sweep, live }: { sweep: Sweep; live: boolean }) {
  const read = useQuery(stagesQuery(sweep, live));

  if (read.isPending) return <Loading what="the stages" />;
  if (read.data === undefined) {
    return <ErrorNote error={read.error} doing="Reading the stages" onRetry={() => void read.refetch()} />;
  }

  const { stages, report, part } = read.data;

  return (
    <>
      <StaleNote query={read} doing="Reading the stages again" />
      <StagesCard
        sweepId={sweep.id}
        boxes={stageBoxes(sweep, stages)}
        counts={sweep.counts}
        saved={savedSeconds(report)}
        part={part}
      />
    </>
  );
}
