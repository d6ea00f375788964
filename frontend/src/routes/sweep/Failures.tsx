import { Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { PageLink } from "@/components/links";
import { count } from "@/lib/format";
import { failuresQuery, type Sweep } from "@/services/sweeps";

/** Why trials of a sweep failed, one entry for each reason. */
export function Failures({ sweep }: { sweep: Sweep }) {
  const failed = sweep.counts.failed + sweep.counts.infeasible;
  const read = useQuery(failuresQuery(sweep.id, failed));
  if (failed === 0) return null;

  return (
    <section className="card" aria-label="Why trials failed" style={{ marginTop: 16 }}>
      <Title order={2} mb={4}>
        Why trials failed
      </Title>
      {read.isError && <ErrorNote error={read.error} doing="Reading the reasons" onRetry={() => void read.refetch()} />}
      <ul className="plain" style={{ display: "grid", gap: 8 }}>
        {(read.data?.data ?? []).map((reason) => (
          <li key={`${reason.state} ${reason.first}`} className="break">
            <strong>
              {count(reason.trials, "trial")} {reason.state === "infeasible" ? "needed too much memory" : "failed"}
            </strong>
            , such as{" "}
            <PageLink
              to="/sweeps/$sweepId/trials/$number"
              params={{ sweepId: sweep.id, number: String(reason.first) }}
              fz="inherit"
              underline="always"
            >
              trial {reason.first}
            </PageLink>
            : {reason.message || reason.failure_kind}
          </li>
        ))}
      </ul>
    </section>
  );
}
