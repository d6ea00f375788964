import { Button, Group, Menu } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState, type ReactNode } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Icon } from "@/components/Icon";
import { Loading } from "@/components/Loading";
import { RangeFilter } from "@/components/RangeFilter";
import { StateFilter } from "@/components/StateFilter";
import { TrialTable } from "@/components/TrialTable";
import { count, value } from "@/lib/format";
import { otherResults } from "@/lib/objectives";
import { MOST_CHOSEN } from "@/lib/overview/selection";
import { trialLooks } from "@/lib/states";
import { constants, matching, parameterNames } from "@/lib/trials";
import { useNow } from "@/lib/useNow";
import type { SweepSearch } from "@/routes/search";
import { ExportTrials } from "@/routes/sweep/ExportTrials";
import { useChosen } from "@/routes/sweep/useChosen";
import { usePaused } from "@/routes/usePaused";
import { metricNamesQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";
import { MOST_METRICS, MOST_TRIALS, trialsQuery, type TrialSort, type TrialState } from "@/services/trials";

const none: TrialState[] = [];

export function TrialsTab({ sweep }: { sweep: Sweep }) {
  const { state: states = none, sort = "number", min, max, stage } = useSearch({ from: "/sweeps/$sweepId" });
  const navigate = useNavigate({ from: "/sweeps/$sweepId" });
  const chosen = useChosen();
  const now = useNow(5000);
  const live = !usePaused();
  const [wanted] = useState(() => otherResults(sweep));
  const [metrics, setMetrics] = useState(wanted.slice(0, MOST_METRICS)); // columns; a person adds and removes some
  const list = useInfiniteQuery(trialsQuery(sweep.id, { states, min, max, stage, sort }, live, metrics));
  const reported = useQuery(metricNamesQuery(sweep, live)).data?.data.map(({ name }) => name) ?? [];
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = list;
  const trials = useMemo(() => list.data?.pages.flatMap((page) => page.data) ?? [], [list.data]);
  const names = useMemo(() => parameterNames(trials), [trials]);
  const same = useMemo(() => constants(trials), [trials]);
  const [asked, setAsked] = useState<Record<string, boolean>>({}); // columns that a person shows or hides
  const shown = names.filter((name) => asked[name] ?? !same.has(name));
  const others = [...new Set([...wanted, ...reported])].filter((name) => name !== sweep.objective?.metric);
  const filtered = states.length > 0 || min !== undefined || max !== undefined || stage !== undefined;

  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);

  const look = (change: Look) =>
    void navigate({
      to: "/sweeps/$sweepId",
      params: { sweepId: sweep.id },
      search: (before) => tidy({ ...before, ...change }),
      replace: true,
    });

  return (
    <>
      <Group mb="sm" gap="sm" align="flex-start">
        <StateFilter looks={trialLooks} chosen={states} onChange={(state) => look({ state })} />
        <RangeFilter label="Value at least" value={min} onValue={(value) => look({ min: value })} />
        <RangeFilter label="Value at most" value={max} onValue={(value) => look({ max: value })} />
        {stage !== undefined && (
          <Button size="xs" variant="default" onClick={() => look({ stage: undefined })}>
            Using stage {stage.slice(0, 12)} ✕
          </Button>
        )}
        <Menu closeOnItemClick={false}>
          <Menu.Target>
            <Button size="xs" variant="default">
              Columns
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {names.length > 0 && <Menu.Label>Parameters</Menu.Label>}
            {names.map((name) => (
              <ColumnItem
                key={name}
                name={name}
                shown={shown.includes(name)}
                onTurn={(on) => setAsked({ ...asked, [name]: on })}
              >
                {same.has(name) && ` = ${value(trials[0]?.params[name])}`}
              </ColumnItem>
            ))}
            {others.length > 0 && <Menu.Label>Last values of metrics</Menu.Label>}
            {others.map((name) => (
              <ColumnItem
                key={name}
                name={name}
                shown={metrics.includes(name)}
                onTurn={(on) => setMetrics(on ? [...metrics, name] : metrics.filter((one) => one !== name))}
                disabled={metrics.length >= MOST_METRICS && !metrics.includes(name)}
              />
            ))}
          </Menu.Dropdown>
        </Menu>
        <ExportTrials sweepId={sweep.id} filter={{ states, min, max, stage }} />
      </Group>
      {chosen.set.size >= MOST_CHOSEN && <p role="status">{count(MOST_CHOSEN, "trial")} are chosen. No more can be.</p>}
      {list.isPending && <Loading what="trials" />}
      {list.isError && <ErrorNote error={list.error} doing="Reading trials" onRetry={() => void list.refetch()} />}
      {list.isSuccess && trials.length === 0 && (
        <div className="card">
          {filtered ? (
            <>
              <p>No trial matches these filters.</p>
              <Button
                variant="default"
                onClick={() => look({ state: [], min: undefined, max: undefined, stage: undefined })}
              >
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
          now={now}
          sort={sort}
          objective={sweep.objective}
          best={sweep.best?.trial}
          chosen={chosen.set}
          onToggle={chosen.toggle}
          names={shown}
          metrics={metrics}
          onSort={(next) => look({ sort: next })}
          onEnd={onEnd}
        />
      )}
      {trials.length > 0 && (
        <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }} role="status">
          {count(trials.length, "trial")} shown of{" "}
          {matching(list.data?.pages[0]?.total ?? 0, MOST_TRIALS, filtered ? "matching trial" : "trial")}
          {hasNextPage && ", more as you scroll"}.
        </p>
      )}
    </>
  );
}

interface ColumnItemProps {
  name: string;
  shown: boolean;
  onTurn: (on: boolean) => void;
  disabled?: boolean;
  children?: ReactNode;
}

function ColumnItem({ name, shown, onTurn, disabled = false, children }: ColumnItemProps) {
  return (
    <Menu.Item
      aria-label={`${shown ? "Hide" : "Show"} ${name}`}
      onClick={() => onTurn(!shown)}
      disabled={disabled}
      leftSection={<Icon name={shown ? "check" : "dashed"} size={12} />}
    >
      {name}
      {children}
    </Menu.Item>
  );
}

type Look = Omit<SweepSearch, "sort" | "min" | "max" | "stage"> & {
  sort?: TrialSort;
  min?: number | undefined;
  max?: number | undefined;
  stage?: string | undefined;
};

/** tidy leaves out an address's default values. */
function tidy({ state, sort, min, max, stage, ...rest }: Look): SweepSearch {
  return {
    ...rest,
    ...(state && state.length > 0 && { state }),
    ...(sort && sort !== "number" && { sort }),
    ...(min !== undefined && { min }),
    ...(max !== undefined && { max }),
    ...(stage !== undefined && { stage }),
  };
}
