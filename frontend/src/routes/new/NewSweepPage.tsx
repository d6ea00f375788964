import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { forgetDraft, keepDraft, readDraft } from "@/lib/draft";
import { oneTrial } from "@/lib/oneTrial";
import { yamlOf } from "@/lib/sweepFile";
import { exampleText } from "@/routes/example";
import { NewSweep } from "@/routes/new/NewSweep";
import { sweepTextQuery } from "@/services/sweeps";
import { trialQuery } from "@/services/trials";

const blank = `version: 1
name: my-sweep
image: my-image:1
command: [python3, train.py, "--lr={{lr}}"]
parameters:
  - {name: lr, type: float, min: 0.0001, max: 0.1, log: true}
search: {algorithm: auto}
objective: {metric: val_accuracy, goal: maximize}
limits: {max_trials: 20}
metrics: {source: stdout}   # the program prints {"epoch": 1, "val_accuracy": 0.9}
`;

/** The origin of the text: this tab's draft, an earlier sweep, the example, or a blank. */
export function NewSweepPage() {
  const { from = "", trial = 0 } = useSearch({ from: "/sweeps/new" });

  return <Begin key={`${from}/${trial}`} from={from} number={trial} />;
}

function Begin({ from: sweep, number }: { from: string; number: number }) {
  const from = number > 0 ? `${sweep}/${number}` : sweep; // the name of its draft
  const copies = from !== "" && from !== "example";
  const earlier = useQuery({ ...sweepTextQuery(sweep), enabled: copies });
  const again = useQuery({ ...trialQuery(sweep, number), enabled: number > 0 });
  const [draft, setDraft] = useState(() => readDraft(from));
  const [begun, setBegun] = useState(0);

  const whole = earlier.data === undefined ? undefined : yamlOf(earlier.data, "spec");
  const copied =
    number === 0 || whole === undefined
      ? whole
      : again.data === undefined
        ? undefined
        : oneTrial(whole, again.data.params);
  const origin = from === "" ? blank : from === "example" ? exampleText : copied;
  const start = draft ?? origin;

  if (start === undefined) {
    const failed = earlier.isError ? earlier : again;

    return failed.isError ? (
      <ErrorNote error={failed.error} doing="Reading the earlier sweep" onRetry={() => void failed.refetch()} />
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
