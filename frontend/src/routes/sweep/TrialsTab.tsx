import { Button, Group } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { StateFilter } from "@/components/StateFilter";
import { TrialTable } from "@/components/TrialTable";
import { count } from "@/lib/format";
import { trialLooks } from "@/lib/states";
import { sorted } from "@/lib/trials";
import type { SweepSearch } from "@/routes/search";
import type { Sweep } from "@/services/sweeps";
import { trialsQuery, type TrialState } from "@/services/trials";

const none: TrialState[] = [];

/** The API lists trials by number alone, so another order needs all of them; this many pages at most. */
const MOST_PAGES = 20;

export function TrialsTab({ sweep }: { sweep: Sweep }) {
  const { state: states = none, sort = "number" } = useSearch({ from: "/sweeps/$sweepId" });
  const navigate = useNavigate();
  const list = useInfiniteQuery(trialsQuery(sweep.id, states));
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = list;
  const pages = list.data?.pages.length ?? 0;

  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);

  const needsAll = sort !== "number" && pages < MOST_PAGES;
  useEffect(() => {
    if (needsAll) onEnd();
  }, [needsAll, onEnd, pages]);

  const loaded = useMemo(() => list.data?.pages.flatMap((page) => page.data) ?? [], [list.data]);
  const trials = useMemo(() => sorted(loaded, sort, sweep.objective?.goal), [loaded, sort, sweep.objective?.goal]);

  const look = (change: SweepSearch) => {
    const search: SweepSearch = {
      ...(states.length > 0 && { state: states }),
      ...(sort !== "number" && { sort }),
      ...change,
    };
    if (search.state?.length === 0) delete search.state;
    if (search.sort === "number") delete search.sort;
    void navigate({ to: "/sweeps/$sweepId", params: { sweepId: sweep.id }, search, replace: true });
  };

  return (
    <>
      <Group mb="sm" justify="space-between">
        <StateFilter looks={trialLooks} chosen={states} onChange={(state) => look({ state })} />
      </Group>
      {list.isPending && <Loading what="trials" />}
      {list.isError && <ErrorNote error={list.error} doing="Reading trials" onRetry={() => void list.refetch()} />}
      {list.isSuccess && trials.length === 0 && (
        <div className="card">
          {states.length > 0 ? (
            <>
              <p>No trial is in {states.length === 1 ? "this state" : "these states"}.</p>
              <Button variant="default" onClick={() => look({ state: [] })}>
                Show all trials
              </Button>
            </>
          ) : (
            <p>The first trials appear here in a moment, once the search has chosen their values.</p>
          )}
        </div>
      )}
      {trials.length > 0 && (
        <TrialTable
          sweepId={sweep.id}
          trials={trials}
          sort={sort}
          metric={sweep.objective?.metric}
          best={sweep.best?.trial}
          onSort={(next) => look({ sort: next })}
          onEnd={onEnd}
        />
      )}
      {trials.length > 0 && (
        <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }} role="status">
          {count(trials.length, "trial")} shown{hasNextPage ? ", more as you scroll" : ""}.
          {hasNextPage && sort !== "number" && pages >= MOST_PAGES && " The order covers these alone."}
        </p>
      )}
    </>
  );
}
