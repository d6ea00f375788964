import { Anchor, Group, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { PageTitle } from "@/components/PageTitle";
import { isMissing } from "@/api/errors";
import { Attempts } from "@/components/Attempts";
import { EditNote } from "@/components/EditNote";
import { ErrorNote } from "@/components/ErrorNote";
import { Facts, type Fact } from "@/components/Facts";
import { Icon } from "@/components/Icon";
import { PageButton, PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { StaleNote } from "@/components/StaleNote";
import { StateLabel } from "@/components/StateLabel";
import { When } from "@/components/When";
import { Waiting } from "@/components/Waiting";
import { between, decimal, value } from "@/lib/format";
import { breaksConstraint, otherResults } from "@/lib/objectives";
import { originText } from "@/lib/trials";
import { settled, trialLooks } from "@/lib/states";
import { useNow } from "@/lib/useNow";
import { MissingThing } from "@/routes/errors";
import { usePaused } from "@/routes/usePaused";
import { Rungs } from "@/components/Rungs";
import { FilesPanel } from "@/routes/trial/FilesPanel";
import { LogPanel } from "@/routes/trial/LogPanel";
import { MemoryPanel } from "@/routes/trial/MemoryPanel";
import { MetricsPanel } from "@/routes/trial/MetricsPanel";
import { hostsQuery } from "@/services/hosts";
import { useCanSteer } from "@/services/session";
import { sweepQuery, type Sweep } from "@/services/sweeps";
import { attemptsQuery, setTrialNote, trialQuery, type Trial } from "@/services/trials";

export function TrialPage() {
  const { sweepId, number } = useParams({ from: "/sweeps/$sweepId/trials/$number" });
  const n = Number(number);
  const paused = usePaused();
  const canSteer = useCanSteer();
  const trial = useQuery({ ...trialQuery(sweepId, n, !paused), enabled: Number.isInteger(n) && n > 0 });
  const sweep = useQuery(sweepQuery(sweepId));
  const attempts = useQuery({ ...attemptsQuery(sweepId, n), enabled: trial.isSuccess });
  const hosts = useQuery(hostsQuery(false));
  const { attempt: chosen } = useSearch({ from: "/sweeps/$sweepId/trials/$number" });
  const navigate = useNavigate({ from: "/sweeps/$sweepId/trials/$number" });

  if (!Number.isInteger(n) || n < 1 || isMissing(trial.error)) return <MissingThing what="trial" />;
  if (trial.isPending) return <Loading what="the trial" />;
  if (trial.data === undefined) {
    return <ErrorNote error={trial.error} doing="Reading the trial" onRetry={() => void trial.refetch()} />;
  }

  const list = attempts.data?.data ?? [];
  const newest = list.at(-1);
  const attempt = list.find((one) => one.number === chosen) ?? newest;
  const choose = (number: number) =>
    void navigate({
      to: "/sweeps/$sweepId/trials/$number",
      search: number === newest?.number ? {} : { attempt: number },
      replace: true,
      resetScroll: false,
    });
  const hostNames = new Map(hosts.data?.data.map((host) => [host.id, host.name]));

  return (
    <>
      <nav aria-label="Where you are" style={{ fontSize: 14 }}>
        <PageLink to="/sweeps">Sweeps</PageLink> /{" "}
        <PageLink to="/sweeps/$sweepId" params={{ sweepId }}>
          {sweep.data?.name ?? "sweep"}
        </PageLink>{" "}
        /
      </nav>
      <Group justify="space-between" align="flex-start">
        <PageTitle text={`Trial ${n}`} />
        {canSteer && (
          <PageButton to="/sweeps/new" search={{ from: sweepId, trial: n }} variant="default" size="xs">
            Run again…
          </PageButton>
        )}
      </Group>
      <StaleNote query={trial} doing="Reading the trial again" />
      <div style={{ display: "grid", gap: 16 }}>
        <TrialHeader key={trial.data.id} trial={trial.data} sweep={sweep.data} />
        {trial.data.waiting && trial.data.waiting.length > 0 && (
          <Waiting rejections={trial.data.waiting} kept={trial.data.kept_host} />
        )}
        {trial.data.rungs && <Rungs rungs={trial.data.rungs} metric={sweep.data?.objective?.metric} />}
        {attempts.isError && (
          <ErrorNote error={attempts.error} doing="Reading attempts" onRetry={() => void attempts.refetch()} />
        )}
        {list.length > 0 && <Attempts attempts={list} chosen={attempt?.id} hostNames={hostNames} onChoose={choose} />}
        {attempt && <MetricsPanel sweepId={sweepId} number={n} attempt={attempt} />}
        {attempt && <MemoryPanel sweepId={sweepId} number={n} attempt={attempt} />}
        {attempt && <FilesPanel sweepId={sweepId} number={n} trialId={trial.data.id} attempt={attempt} />}
        {attempt && <LogPanel key={attempt.id} attempt={attempt} />}
      </div>
    </>
  );
}

function TrialHeader({ trial, sweep }: { trial: Trial; sweep: Sweep | undefined }) {
  const now = useNow();
  const bad = trial.state === "failed" || trial.state === "infeasible";
  const broken = breaksConstraint(trial);
  const metric = sweep?.objective?.metric;
  const result = trial.results?.[metric ?? ""];
  const facts: Fact[] = [
    { name: "State", value: <StateLabel look={trialLooks[trial.state]} /> },
    {
      name: metric ?? "Value",
      value:
        trial.value !== undefined ? (
          <strong>{decimal(trial.value)}</strong>
        ) : broken && result !== undefined ? (
          `${decimal(result)} (breaks a constraint)`
        ) : (
          "no result"
        ),
    },
    ...(sweep ? otherResults(sweep) : []).flatMap((name): Fact[] => {
      const other = trial.results?.[name];

      return other === undefined ? [] : [{ name, value: decimal(other) }];
    }),
    { name: "Values by", value: originText(trial.origin) },
    { name: "Attempts", value: trial.attempts },
    { name: "Duration", value: between(trial.started_at, trial.finished_at, now) },
    { name: "Created", value: <When at={trial.created_at} /> },
    {
      name: "Note",
      value: (
        <EditNote note={trial.note ?? ""} save={(note, was) => setTrialNote(trial.sweep_id, trial.number, note, was)} />
      ),
    },
    {
      name: "Probe of its kind",
      value: (
        <PageLink to="/probes/$shapeKey" params={{ shapeKey: trial.shape_key }} className="mono">
          {trial.shape_key.slice(0, 12)}
        </PageLink>
      ),
    },
  ];
  if (trial.temporal_url !== undefined) {
    facts.push({
      name: "Steps",
      value: (
        <Anchor href={trial.temporal_url} target="_blank" rel="noreferrer">
          Temporal <Icon name="link" size={12} />
        </Anchor>
      ),
    });
  }

  return (
    <section className="card" aria-label="Overview">
      {(trial.state !== "succeeded" || broken) && trial.message !== undefined && trial.message !== "" && (
        <div style={{ marginBottom: 14 }}>
          <Note kind={bad ? "bad" : settled(trial.state) && trial.state !== "pruned" && !broken ? "good" : "plain"}>
            {trial.message}
          </Note>
        </div>
      )}
      <Facts facts={facts} />
      <Title order={2} mt="md" mb="xs">
        Values
      </Title>
      <Facts
        facts={Object.entries(trial.params).map(([name, v]) => ({
          name,
          value: <span className="mono">{value(v)}</span>,
        }))}
      />
      {trial.outputs_removed !== undefined && trial.outputs_removed !== "" && <p>{trial.outputs_removed}</p>}
    </section>
  );
}
