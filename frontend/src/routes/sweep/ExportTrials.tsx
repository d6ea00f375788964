import { Button, Menu } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { ErrorNote } from "@/components/ErrorNote";
import { count, grouped } from "@/lib/format";
import { csv, jsonLines } from "@/lib/exportTrials";
import type { Sweep } from "@/services/sweeps";
import { trialPages, type Trial, type TrialFilter } from "@/services/trials";

const kinds = {
  csv: { text: "CSV", end: "csv", type: "text/csv;charset=utf-8", write: csv },
  jsonl: { text: "JSON lines", end: "jsonl", type: "application/jsonl", write: jsonLines },
};

/** Trials as a file, as the list is filtered and sorted. It reads page by page and says how far it is. */
export function ExportTrials({ sweep, filter }: { sweep: Sweep; filter: TrialFilter }) {
  const [progress, setProgress] = useState("");
  const [error, setError] = useState<unknown>(null);
  const running = useRef<AbortController | null>(null);

  useEffect(() => () => running.current?.abort(), []);

  const start = async (kind: keyof typeof kinds) => {
    const { end, type, write } = kinds[kind];
    const control = new AbortController();
    running.current = control;
    setError(null);
    setProgress("Reading trials…");
    try {
      const pages: Trial[][] = [];
      let read = 0;
      let total = 0;
      for await (const page of trialPages(sweep.id, filter, control.signal)) {
        pages.push(page.data);
        read += page.data.length;
        total = Math.max(total, page.total, read);
        setProgress(`${grouped(read)} of ${grouped(total)} trials read…`);
      }
      save(new Blob(write(pages), { type }), `${sweep.name}-trials.${end}`);
      setProgress(`${count(read, "trial")} exported.`);
    } catch (reason) {
      setProgress("");
      if (!control.signal.aborted) setError(reason);
    } finally {
      running.current = null;
    }
  };

  const busy = progress.endsWith("…");

  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="xs" variant="default" disabled={busy}>
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {(Object.keys(kinds) as (keyof typeof kinds)[]).map((kind) => (
            <Menu.Item key={kind} onClick={() => void start(kind)}>
              {kinds[kind].text}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {busy && (
        <Button size="xs" variant="subtle" onClick={() => running.current?.abort()}>
          Stop the export
        </Button>
      )}
      <span role="status" style={{ fontSize: 13, alignSelf: "center" }}>
        {progress}
      </span>
      {error !== null && <ErrorNote error={error} doing="Exporting trials" />}
    </>
  );
}

function save(blob: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
