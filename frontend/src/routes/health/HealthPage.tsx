import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { Findings, troubles } from "@/components/Findings";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { PageTitle } from "@/components/PageTitle";
import { moment } from "@/lib/format";
import { usePaused } from "@/routes/usePaused";
import { healthQuery } from "@/services/health";

/** The findings of /healthz about each part, for a person who repairs it. */
export function HealthPage() {
  const health = useQuery({ ...healthQuery(!usePaused()), refetchOnMount: "always" });

  return (
    <>
      <PageTitle text="Health" />
      {health.isPending && <Loading what="the health of each part" />}
      {health.isError && (
        <ErrorNote error={health.error} doing="Reading the health" onRetry={() => void health.refetch()} />
      )}
      {health.data && (
        <div style={{ display: "grid", gap: 12 }}>
          {health.isError ? (
            <Note kind="warn">
              This is as of {moment(new Date(health.dataUpdatedAt).toISOString())}, and may not be so any more.
            </Note>
          ) : (
            <Note kind={!health.data.ok ? "bad" : troubles(health.data.findings) === "" ? "good" : "warn"}>
              {!health.data.ok
                ? "Something is wrong. The table says what, and what to do."
                : troubles(health.data.findings) === ""
                  ? "Every part works."
                  : "Every part works. Some will not before long."}
            </Note>
          )}
          <Findings findings={health.data.findings} />
        </div>
      )}
    </>
  );
}
