import { useQuery } from "@tanstack/react-query";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Report } from "@/components/Report";
import { reportQuery, type Sweep } from "@/services/sweeps";

export function ReportTab({ sweep }: { sweep: Sweep }) {
  const report = useQuery(reportQuery(sweep.id));

  if (report.isPending) return <Loading what="the report" />;
  if (report.isError) {
    return <ErrorNote error={report.error} doing="Reading the report" onRetry={() => void report.refetch()} />;
  }

  return <Report report={report.data} />;
}
