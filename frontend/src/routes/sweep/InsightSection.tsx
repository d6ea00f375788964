import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { ImportanceCard } from "@/components/ImportanceCard";
import { Loading } from "@/components/Loading";
import { StaleNote } from "@/components/StaleNote";
import { StopsCard } from "@/components/StopsCard";
import { TradesCard } from "@/routes/sweep/TradesCard";
import type { Chosen } from "@/routes/sweep/useChosen";
import { insightQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";
import type { Trial } from "@/services/trials";

interface Props {
  sweep: Sweep;
  trials: Trial[];
  chosen: Chosen;
  dark: boolean;
  live: boolean;
}

/** What the server computes of a sweep's trials: best trades, importance of parameters, stops by rung. */
export function InsightSection({ sweep, trials, chosen, dark, live }: Props) {
  const read = useQuery(insightQuery(sweep, live));

  if (read.isPending) return <Loading what="the importance of parameters" />;
  if (read.data === undefined) {
    return <ErrorNote error={read.error} doing="Reading the importance" onRetry={() => void read.refetch()} />;
  }

  const metric = sweep.objective?.metric ?? "value";
  const { front = [] } = read.data;

  return (
    <>
      <StaleNote query={read} doing="Reading the importance again" />
      {front.length > 0 && <TradesCard sweep={sweep} front={front} trials={trials} chosen={chosen} dark={dark} />}
      {read.data.importance_of.trials > 1 && (
        <ImportanceCard insight={read.data} metric={sweep.objective?.further ? "all objectives" : metric} />
      )}
      {read.data.rungs.length > 0 && <StopsCard rungs={read.data.rungs} metric={metric} />}
    </>
  );
}
