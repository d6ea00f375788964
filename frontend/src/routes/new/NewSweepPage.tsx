import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { forgetDraft, keepDraft, readDraft } from "@/lib/draft";
import { yamlOf } from "@/lib/sweepFile";
import { exampleText } from "@/routes/example";
import { NewSweep } from "@/routes/new/NewSweep";
import { sweepTextQuery } from "@/services/sweeps";

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

/** The origin of the text: this tab's draft, an earlier sweep, the example, or a blank. */
export function NewSweepPage() {
  const { from = "" } = useSearch({ from: "/sweeps/new" });

  return <Begin key={from} from={from} />;
}

function Begin({ from }: { from: string }) {
  const copies = from !== "" && from !== "example";
  const earlier = useQuery({ ...sweepTextQuery(from), enabled: copies });
  const [draft, setDraft] = useState(() => readDraft(from));
  const [begun, setBegun] = useState(0);

  const copied = earlier.data === undefined ? undefined : yamlOf(earlier.data, "spec");
  const origin = from === "" ? blank : from === "example" ? exampleText : copied;
  const start = draft ?? origin;

  if (start === undefined) {
    return earlier.isError ? (
      <ErrorNote error={earlier.error} doing="Reading the earlier sweep" onRetry={() => void earlier.refetch()} />
    ) : (
      <Loading what="the earlier sweep" />
    );
  }

  return (
    <NewSweep
      key={begun}
      start={start}
      origin={origin}
      onText={(text) => keepDraft(from, text)}
      onStartOver={() => {
        forgetDraft(from);
        setDraft(null);
        setBegun(begun + 1);
      }}
      onLaunched={(sent) => {
        if (readDraft(from) === sent) forgetDraft(from);
      }}
    />
  );
}
