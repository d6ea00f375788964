import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { ImportanceCard } from "@/components/ImportanceCard";
import { Loading } from "@/components/Loading";
import { StaleNote } from "@/components/StaleNote";
import { StopsCard } from "@/components/StopsCard";
import { insightQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

/** What the server computes of a sweep's trials: importance of parameters, stops by rung. */
export function InsightSection({ sweep, live }: { sweep: Sweep; live: boolean }) {
  const read = useQuery(insightQuery(sweep, live));

  if (read.isPending) return <Loading what="the importance of parameters" />;
  if (read.data === undefined) {
    return <ErrorNote error={read.error} doing="Reading the importance" onRetry={() => void read.refetch()} />;
  }

  const metric = sweep.objective?.metric ?? "value";

  return (
    <>
      <StaleNote query={read} doing="Reading the importance again" />
      {read.data.importance_of.trials > 1 && <ImportanceCard insight={read.data} metric={metric} />}
      {read.data.rungs.length > 0 && <StopsCard rungs={read.data.rungs} metric={metric} />}
    </>
  );
}
