import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Report } from "@/components/Report";
import { StaleNote } from "@/components/StaleNote";
import { reportQuery, type Sweep } from "@/services/sweeps";

export function ReportTab({ sweep }: { sweep: Sweep }) {
  const report = useQuery(reportQuery(sweep.id));

  if (report.isPending) return <Loading what="the report" />;
  if (report.data === undefined) {
    return <ErrorNote error={report.error} doing="Reading the report" onRetry={() => void report.refetch()} />;
  }

  return (
    <>
      <StaleNote query={report} doing="Reading the report again" />
      <Report report={report.data} />
    </>
  );
}
