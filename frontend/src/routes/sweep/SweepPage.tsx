import { Anchor, Group, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useRouterState, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { PageTitle } from "@/components/PageTitle";
import { isMissing } from "@/api/errors";
import { Copy } from "@/components/Copy";
import { EditNote } from "@/components/EditNote";
import { ErrorNote } from "@/components/ErrorNote";
import { Facts, type Fact } from "@/components/Facts";
import { Icon } from "@/components/Icon";
import { PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { ProgressBar } from "@/components/ProgressBar";
import { StaleNote } from "@/components/StaleNote";
import { StateLabel } from "@/components/StateLabel";
import { ago, between, count, decimal, zoned } from "@/lib/format";
import { etaText } from "@/lib/eta";
import { constraintText, objectivesOf } from "@/lib/objectives";
import { progressText, segments } from "@/lib/progress";
import { ended, sweepLooks } from "@/lib/states";
import { useNow } from "@/lib/useNow";
import { MissingThing } from "@/routes/errors";
import { Failures } from "@/routes/sweep/Failures";
import { ReportTab } from "@/routes/sweep/ReportTab";
import { SpecTab } from "@/routes/sweep/SpecTab";
import { SweepControls } from "@/routes/sweep/SweepControls";
import { TrialsTab } from "@/routes/sweep/TrialsTab";
import type { SweepTab } from "@/routes/search";
import { setNote, sweepQuery, type ProblemItem, type Sweep } from "@/services/sweeps";

const OverviewTab = lazy(() => import("@/routes/sweep/OverviewTab").then((m) => ({ default: m.OverviewTab })));

export function SweepPage() {
  const { sweepId } = useParams({ from: "/sweeps/$sweepId" });
  const query = useQuery(sweepQuery(sweepId));

  if (isMissing(query.error)) return <MissingThing what="sweep" />;
  if (query.isPending) return <Loading what="the sweep" />;
  if (query.data === undefined) {
    return <ErrorNote error={query.error} doing="Reading the sweep" onRetry={() => void query.refetch()} />;
  }

  const sweep = query.data;

  return (
    <>
      <nav aria-label="Where you are" style={{ fontSize: 14 }}>
        <PageLink to="/sweeps">Sweeps</PageLink> /
      </nav>
      <Group justify="space-between" align="flex-start" mb="sm">
        <PageTitle text={sweep.name} />
        <SweepControls key={sweep.id} sweep={sweep} />
      </Group>
      <StaleNote query={query} doing="Reading the sweep again" />
      <SweepWarnings />
      <SweepHeader key={`header of ${sweep.id}`} sweep={sweep} />
      <Failures key={`failures of ${sweep.id}`} sweep={sweep} />
      <SweepTabs key={sweep.id} sweep={sweep} />
    </>
  );
}

function SweepTabs({ sweep }: { sweep: Sweep }) {
  const { tab: asked } = useSearch({ from: "/sweeps/$sweepId" });
  const navigate = useNavigate({ from: "/sweeps/$sweepId" });
  // A page does not turn to another tab by itself when the first trials come.
  const [first] = useState<SweepTab>(sweep.counts.total > 0 ? "overview" : "trials");
  const show = (value: string | null) => {
    const next = value as SweepTab;
    void navigate({ to: "/sweeps/$sweepId", search: (before) => ({ ...before, tab: next }), resetScroll: false });
  };

  return (
    <Tabs value={asked ?? first} onChange={show} mt="md" keepMounted={false}>
      <Tabs.List mb="sm">
        <Tabs.Tab value="overview">Overview</Tabs.Tab>
        <Tabs.Tab value="trials">Trials</Tabs.Tab>
        <Tabs.Tab value="report">Report</Tabs.Tab>
        <Tabs.Tab value="spec">Spec</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="overview">
        <Suspense fallback={<Loading what="the charts" />}>
          <OverviewTab sweep={sweep} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="trials">
        <TrialsTab sweep={sweep} />
      </Tabs.Panel>
      <Tabs.Panel value="report">
        <ReportTab sweep={sweep} />
      </Tabs.Panel>
      <Tabs.Panel value="spec">
        <SpecTab sweep={sweep} />
      </Tabs.Panel>
    </Tabs>
  );
}

/** The server's answer when this sweep was made. */
function SweepWarnings() {
  const warnings = useRouterState({ select: (state) => state.location.state.warnings ?? none });
  if (warnings.length === 0) return null;

  return (
    <div style={{ marginBottom: 12 }}>
      <Note kind="warn">
        {warnings.map((item) => (
          <p key={item.code + item.pointer} style={{ margin: 0 }}>
            {item.detail}
          </p>
        ))}
      </Note>
    </div>
  );
}

const none: ProblemItem[] = [];

/** commandOf is the command for what a person wants next from a sweep. */
function commandOf(sweep: Sweep): string {
  const id = sweep.id.slice(0, 8);
  if (!ended(sweep.state)) return `berth sweep watch ${id}`;

  return sweep.best ? `berth sweep best ${id} --download` : `berth sweep trials ${id}`;
}

function SweepHeader({ sweep }: { sweep: Sweep }) {
  const now = useNow();
  const remaining = etaText(sweep);
  const goal = sweep.objective?.goal === "minimize" ? "lowest" : "highest";
  const objectives = objectivesOf(sweep.objective).map((one) => `${one.goal} ${one.metric}`);
  const facts: Fact[] = [
    { name: "State", value: <StateLabel look={sweepLooks[sweep.state]} /> },
    {
      name: sweep.objective ? `Best ${sweep.objective.metric} (${goal})` : "Best",
      value: sweep.best ? (
        <>
          <strong>{decimal(sweep.best.value)}</strong> in{" "}
          <PageLink
            to="/sweeps/$sweepId/trials/$number"
            params={{ sweepId: sweep.id, number: String(sweep.best.trial) }}
          >
            trial {sweep.best.trial}
          </PageLink>
        </>
      ) : (
        "no result yet"
      ),
    },
    ...(objectives.length > 1 ? [{ name: "Objectives", value: objectives.join(", ") }] : []),
    ...(sweep.constraints ? [{ name: "Constraints", value: sweep.constraints.map(constraintText).join(", ") }] : []),
    { name: "At once", value: sweep.max_parallel === 0 ? "as many as fit" : count(sweep.max_parallel, "trial") },
    { name: "Duration", value: between(sweep.started_at, sweep.finished_at, now) },
    ...(remaining === undefined ? [] : [{ name: "Still takes", value: remaining }]),
    {
      name: "Created",
      value: <time title={zoned(sweep.created_at)}>{`${ago(sweep.created_at, now)} by ${sweep.created_by}`}</time>,
    },
    { name: "Repeated after out of memory", value: count(sweep.counts.oom_retries, "attempt") },
    {
      name: "Id",
      value: (
        <>
          <span className="mono break">{sweep.id}</span> <Copy text={sweep.id} size="compact-xs" variant="default" />
        </>
      ),
    },
    { name: "In a terminal", value: <span className="mono break">{commandOf(sweep)}</span> },
    { name: "Note", value: <EditNote note={sweep.note ?? ""} save={(note, was) => setNote(sweep.id, note, was)} /> },
    { name: "Image", value: <span className="mono break">{sweep.image}</span> },
  ];
  if (sweep.temporal_url !== undefined) {
    facts.push({
      name: "Steps",
      value: (
        <Anchor href={sweep.temporal_url} target="_blank" rel="noreferrer">
          Temporal <Icon name="link" size={12} />
        </Anchor>
      ),
    });
  }

  return (
    <section className="card" aria-label="Overview">
      <ProgressBar
        label="Progress"
        segments={segments(sweep.counts, ended(sweep.state))}
        text={progressText(sweep.counts, ended(sweep.state))}
      />
      <div style={{ height: 14 }} />
      <Facts facts={facts} />
      {sweep.eta && (
        <p className="chartnote" style={{ margin: "10px 0 0" }}>
          Still takes, if it goes on as now: {sweep.eta.why}.
        </p>
      )}
      {sweep.reason !== undefined && sweep.reason !== "" && (
        <div style={{ marginTop: 14 }}>
          <Note kind={sweep.state === "failed" ? "bad" : sweep.state === "succeeded" ? "good" : "plain"}>
            {sweep.reason}
          </Note>
        </div>
      )}
    </section>
  );
}
