import { Button, Group } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { PageTitle } from "@/components/PageTitle";
import { ErrorNote } from "@/components/ErrorNote";
import { Icon } from "@/components/Icon";
import { PageButton } from "@/components/links";
import { Loading } from "@/components/Loading";
import { StateFilter } from "@/components/StateFilter";
import { SweepTable } from "@/components/SweepTable";
import { count } from "@/lib/format";
import { sweepLooks } from "@/lib/states";
import { useNow } from "@/lib/useNow";
import { FirstRun } from "@/routes/FirstRun";
import { sweepsQuery, type SweepState } from "@/services/sweeps";

const none: SweepState[] = [];

export function SweepsPage() {
  const { state: states = none } = useSearch({ from: "/sweeps" });
  const navigate = useNavigate();
  const list = useInfiniteQuery(sweepsQuery(states));
  const now = useNow();
  const sweeps = useMemo(() => list.data?.pages.flatMap((page) => page.data) ?? [], [list.data]);

  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);

  if (list.isSuccess && sweeps.length === 0 && states.length === 0) return <FirstRun />;

  return (
    <>
      <Group justify="space-between" mb="sm">
        <PageTitle text="Sweeps" />
        <PageButton to="/sweeps/new" leftSection={<Icon name="plus" size={14} />}>
          New sweep
        </PageButton>
      </Group>
      <div style={{ marginBottom: 12 }}>
        <StateFilter
          looks={sweepLooks}
          chosen={states}
          onChange={(state) =>
            void navigate({ to: "/sweeps", search: state.length > 0 ? { state } : {}, replace: true })
          }
        />
      </div>
      {list.isPending && <Loading what="sweeps" />}
      {list.isError && <ErrorNote error={list.error} doing="Reading sweeps" onRetry={() => void list.refetch()} />}
      {list.isSuccess && sweeps.length === 0 && (
        <div className="card">
          <p>No sweep is in {states.length === 1 ? "this state" : "these states"}.</p>
          <Button variant="default" onClick={() => void navigate({ to: "/sweeps", search: {} })}>
            Show all sweeps
          </Button>
        </div>
      )}
      {sweeps.length > 0 && <SweepTable sweeps={sweeps} now={now} onEnd={onEnd} />}
      {isFetchingNextPage && <Loading what="more sweeps" />}
      {sweeps.length > 0 && (
        <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }}>
          {count(sweeps.length, "sweep")} shown{hasNextPage ? ", more as you scroll" : ", newest first"}.
        </p>
      )}
    </>
  );
}
