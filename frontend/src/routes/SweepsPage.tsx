import { Button, Group, NativeSelect } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Icon } from "@/components/Icon";
import { PageButton } from "@/components/links";
import { Loading } from "@/components/Loading";
import { PageTitle } from "@/components/PageTitle";
import { ReadOnly } from "@/components/ReadOnly";
import { StateFilter } from "@/components/StateFilter";
import { SweepTable } from "@/components/SweepTable";
import { TextFilter } from "@/components/TextFilter";
import { count } from "@/lib/format";
import { sweepLooks } from "@/lib/states";
import { matching } from "@/lib/trials";
import { useNow } from "@/lib/useNow";
import { BulkActions } from "@/routes/BulkActions";
import { FirstRun } from "@/routes/FirstRun";
import { Remaining } from "@/routes/Remaining";
import type { SweepsSearch } from "@/routes/search";
import { useCanSteer } from "@/services/session";
import { MOST_SWEEPS, sweepsQuery, type Sweep, type SweepSort, type SweepState } from "@/services/sweeps";

const none: SweepState[] = [];

/** The orders of the columns; a phone hides some of the columns. */
const orders: { value: SweepSort; label: string }[] = [
  { value: "-created_at", label: "Newest first" },
  { value: "created_at", label: "Oldest first" },
  { value: "name", label: "By name" },
  { value: "-name", label: "By name, Z to A" },
  { value: "-finished_at", label: "Latest end first" },
  { value: "finished_at", label: "Earliest end first" },
];
const remaining = (sweep: Sweep) => <Remaining id={sweep.id} />;

export function SweepsPage() {
  const { state: states = none, name = "", by = "", sort = "-created_at" } = useSearch({ from: "/sweeps" });
  const navigate = useNavigate({ from: "/sweeps" });
  const list = useInfiniteQuery(sweepsQuery({ states, name, by, sort }));
  const canSteer = useCanSteer();
  const now = useNow();
  const sweeps = useMemo(() => list.data?.pages.flatMap((page) => page.data) ?? [], [list.data]);
  const filtered = states.length > 0 || name !== "" || by !== "";

  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);

  const look = useCallback(
    (change: Look) =>
      void navigate({ to: "/sweeps", search: (before) => tidy({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const onToggle = useCallback(
    (id: string) =>
      setChosen((before) =>
        before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id]),
      ),
    [],
  );
  const onSort = useCallback((next: SweepSort) => look({ sort: next }), [look]);

  if (list.isSuccess && sweeps.length === 0 && !filtered && !list.isPlaceholderData) return <FirstRun />;

  return (
    <>
      <Group justify="space-between" mb="sm">
        <PageTitle text="Sweeps" />
        {canSteer ? (
          <PageButton to="/sweeps/new" leftSection={<Icon name="plus" size={14} />}>
            New sweep
          </PageButton>
        ) : (
          <ReadOnly action="start a sweep" />
        )}
      </Group>
      <Group mb="sm" gap="sm">
        <TextFilter label="Name or note" text={name} onText={(text) => look({ name: text })} />
        <TextFilter label="Created by" text={by} onText={(text) => look({ by: text })} />
        <NativeSelect
          className="phone"
          size="xs"
          aria-label="Order"
          value={sort}
          data={orders}
          onChange={(event) => look({ sort: event.currentTarget.value as SweepSort })}
        />
        <StateFilter looks={sweepLooks} chosen={states} onChange={(state) => look({ state })} />
      </Group>
      <BulkActions sweeps={sweeps.filter((sweep) => chosen.has(sweep.id))} onNone={() => setChosen(new Set())} />
      {list.isPending && <Loading what="sweeps" />}
      {list.isError && <ErrorNote error={list.error} doing="Reading sweeps" onRetry={() => void list.refetch()} />}
      {list.isSuccess && sweeps.length === 0 && (
        <div className="card">
          <p>No sweep matches these filters.</p>
          <Button variant="default" onClick={() => look({ state: [], name: "", by: "" })}>
            Show all sweeps
          </Button>
        </div>
      )}
      {sweeps.length > 0 && (
        <SweepTable
          sweeps={sweeps}
          now={now}
          sort={sort}
          onSort={onSort}
          chosen={chosen}
          onToggle={onToggle}
          remaining={remaining}
          onEnd={onEnd}
        />
      )}
      {isFetchingNextPage && <Loading what="more sweeps" />}
      {sweeps.length > 0 && (
        <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }} role="status">
          {count(sweeps.length, "sweep")} shown of{" "}
          {matching(list.data?.pages[0]?.total ?? 0, MOST_SWEEPS, filtered ? "matching sweep" : "sweep")}
          {hasNextPage && ", more as you scroll"}.
        </p>
      )}
    </>
  );
}

type Look = Omit<SweepsSearch, "sort"> & { sort?: SweepSort };

/** tidy leaves out an address's default values. */
function tidy({ state, name, by, sort }: Look): SweepsSearch {
  return {
    ...(state && state.length > 0 && { state }),
    ...(name && { name }),
    ...(by && { by }),
    ...(sort && sort !== "-created_at" && { sort }),
  };
}
