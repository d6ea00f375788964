import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { stringify } from "yaml";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { exampleText } from "@/routes/example";
import { NewSweep } from "@/routes/new/NewSweep";
import { sweepQuery } from "@/services/sweeps";

const blank = `version: 1
name: my-sweep
image: my-image:1
command: [python3, train.py, "--lr={{lr}}"]
parameters:
  - {name: lr, type: float, min: 0.0001, max: 0.1, log: true}
search: {algorithm: random}
objective: {metric: val_accuracy, goal: maximize}
limits: {max_trials: 20}
metrics: {source: stdout}   # the program prints {"epoch": 1, "val_accuracy": 0.9}
`;

const DRAFT = "berth-draft"; // outlives a reload and a log-in, not the tab

/** Where the text comes from: an earlier sweep, the example, what was begun in this tab, or a blank. */
export function NewSweepPage() {
  const { from } = useSearch({ from: "/sweeps/new" });
  const earlier = useQuery({ ...sweepQuery(from ?? ""), enabled: from !== undefined && from !== "example" });

  if (from !== undefined && from !== "example") {
    if (earlier.isPending) return <Loading what="the earlier sweep" />;
    if (earlier.isError) {
      return (
        <ErrorNote error={earlier.error} doing="Reading the earlier sweep" onRetry={() => void earlier.refetch()} />
      );
    }
  }

  const start =
    from === "example"
      ? exampleText
      : earlier.data && from !== undefined
        ? stringify(earlier.data.spec ?? {}, { lineWidth: 0 })
        : (sessionStorage.getItem(DRAFT) ?? blank);

  return <NewSweep key={from ?? ""} start={start} onText={(text) => sessionStorage.setItem(DRAFT, text)} />;
}
