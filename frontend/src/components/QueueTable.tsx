import { Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Kept } from "@/components/Kept";
import { num, Table } from "@/components/Table";
import { between, count, moment } from "@/lib/format";
import type { QueuedAttempt } from "@/services/hosts";

interface Props {
  rows: QueuedAttempt[];
  total: number;
  now: number;
}

/** The attempts that wait for a place, in the placer's order, each with its reason. */
export function QueueTable({ rows, total, now }: Props) {
  return (
    <section aria-label="What waits, and why">
      <Title order={2} mb="xs">
        What waits, and why
      </Title>
      {rows.length === 0 && <div className="card">Nothing waits for a place.</div>}
      {rows.length > 0 && (
        <>
          <p className="chartnote">
            {count(total, "attempt waits", "attempts wait")}
            {rows.length < total && `, the first ${rows.length} are shown`}. The placer looks at them in this order; it
            may place a later one that fits first. When the trial that blocks one should end is by the median of its
            sweep&apos;s trials so far.
          </p>
          <Table
            label="What waits"
            heads={[num("Position"), "Trial", num("Waits for"), "Blocker ends", "Why"]}
            rows={rows.map((row) => ({
              key: row.attempt_id,
              cells: [
                row.position,
                <Waiter row={row} />,
                <time title={moment(row.since)}>{between(row.since, undefined, now)}</time>,
                <BlockerEnd at={row.blocker_ends_at} now={now} />,
                <Reasons row={row} now={now} />,
              ],
            }))}
          />
        </>
      )}
    </section>
  );
}

function Waiter({ row }: { row: QueuedAttempt }) {
  return (
    <>
      <Link to="/sweeps/$sweepId/trials/$number" params={{ sweepId: row.sweep_id, number: String(row.trial) }}>
        Trial {row.trial}
      </Link>{" "}
      of{" "}
      <Link to="/sweeps/$sweepId" params={{ sweepId: row.sweep_id }}>
        {row.sweep_name}
      </Link>
      {row.number > 1 && `, attempt ${row.number}`}
      {row.purpose === "probe" && ", probe"}
    </>
  );
}

function BlockerEnd({ at, now }: { at: string | undefined; now: number }) {
  if (at === undefined) return "Unknown";
  const text = Date.parse(at) > now ? `In ${between(new Date(now).toISOString(), at, now)}` : "Any moment";

  return <time title={moment(at)}>{text}</time>;
}

function Reasons({ row, now }: { row: QueuedAttempt; now: number }) {
  const late = row.not_before !== undefined && Date.parse(row.not_before) > now ? row.not_before : undefined;
  const active = row.sweep_state === "running" || row.sweep_state === "pending"; // both have trials placed
  const reasons = [...new Set(row.waiting.map((one) => one.reason))];

  return (
    <ul className="plain">
      {!active && <li>Its sweep is {row.sweep_state}.</li>}
      {late !== undefined && <li>It is put off for {between(new Date(now).toISOString(), late, now)}.</li>}
      {row.kept_host && (
        <li>
          <Kept host={row.kept_host} />
        </li>
      )}
      {reasons.slice(0, 3).map((reason) => (
        <li key={reason}>{reason}</li>
      ))}
      {reasons.length > 3 && <li>{count(reasons.length - 3, "further reason")}: its trial has them.</li>}
      {reasons.length === 0 && late === undefined && active && <li>The placer has not looked at it yet.</li>}
    </ul>
  );
}
