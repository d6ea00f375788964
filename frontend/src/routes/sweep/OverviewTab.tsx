import { Button, Group, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useRouteContext } from "@tanstack/react-router";
import { useState, useSyncExternalStore } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { StaleNote } from "@/components/StaleNote";
import { count, grouped } from "@/lib/format";
import { MOST_CHOSEN } from "@/lib/overview/selection";
import { stageNames } from "@/lib/stages";
import { CurvesSection } from "@/routes/sweep/CurvesSection";
import { InsightSection } from "@/routes/sweep/InsightSection";
import { StagesSection } from "@/routes/sweep/StagesSection";
import { TimelineSection } from "@/routes/sweep/TimelineSection";
import { TrialCharts } from "@/routes/sweep/TrialCharts";
import { useChosen } from "@/routes/sweep/useChosen";
import { chartTrialsQuery } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

const SHOWN = 20;

/** A sweep as charts, with one selection of trials for all of them. */
export function OverviewTab({ sweep }: { sweep: Sweep }) {
  const { live: stream } = useRouteContext({ from: "__root__" });
  const live = useSyncExternalStore(stream.subscribe, stream.current) !== "paused";
  const dark = useComputedColorScheme() === "dark";
  const chosen = useChosen();
  const [cleared, setCleared] = useState(0); // how often; ranges on axes go with it
  const read = useQuery(chartTrialsQuery(sweep, live));

  if (read.isPending) return <Loading what="the trials" />;
  if (read.data === undefined) {
    return <ErrorNote error={read.error} doing="Reading trials" onRetry={() => void read.refetch()} />;
  }

  const { rows, total = rows.length } = read.data;
  const numbers = [...chosen.set];

  return (
    <div style={{ display: "grid", gap: 16 }}>
      <StaleNote query={read} doing="Reading trials again" />
      {rows.length < total && (
        <p style={{ margin: 0 }} role="status">
          The charts show {grouped(rows.length)} of {count(total, "trial")}: the best and the newest.
        </p>
      )}
      {stageNames(sweep).length > 0 && <StagesSection sweep={sweep} live={live} />}
      <Group gap="sm" className="card" style={{ padding: "8px 12px" }} role="group" aria-label="Chosen trials">
        {numbers.length === 0 ? (
          <span>Click a mark, or drag over several, to choose trials: all charts show the chosen ones.</span>
        ) : (
          <>
            <strong>{count(numbers.length, "trial")} chosen</strong>
            {numbers.length >= MOST_CHOSEN && (
              <span role="status">No more can be chosen. Of more, those with the lowest numbers are.</span>
            )}
            <span className="break">
              {numbers.slice(0, SHOWN).map((n) => (
                <span key={n}>
                  <PageLink to="/sweeps/$sweepId/trials/$number" params={{ sweepId: sweep.id, number: String(n) }}>
                    {n}
                  </PageLink>{" "}
                </span>
              ))}
              {numbers.length > SHOWN && `and ${grouped(numbers.length - SHOWN)} more`}
            </span>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => {
                setCleared(cleared + 1);
                chosen.choose([]);
              }}
            >
              Choose none
            </Button>
          </>
        )}
      </Group>
      <TrialCharts cleared={cleared} sweep={sweep} trials={rows} part={rows.length < total} chosen={chosen} dark={dark}>
        <InsightSection sweep={sweep} trials={rows} chosen={chosen} dark={dark} live={live} />
      </TrialCharts>
      <CurvesSection sweep={sweep} chosen={chosen} dark={dark} live={live} />
      <TimelineSection sweep={sweep} chosen={chosen} dark={dark} live={live} />
    </div>
  );
}
