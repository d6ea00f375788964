import { Anchor, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { isMissing } from "@/api/errors";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { right, Table } from "@/components/Table";
import { bytes, count } from "@/lib/format";
import { usePaused } from "@/routes/usePaused";
import { fileAddress, filesQuery, live, type Attempt, type FileList, type LeftOutFile } from "@/services/trials";

interface Props {
  sweepId: string;
  number: number;
  trialId: string;
  attempt: Attempt;
}

/** An attempt's files in /trial/out, with links to download them; nothing while it runs. */
export function FilesPanel({ sweepId, number, trialId, attempt }: Props) {
  const paused = usePaused();
  const files = useQuery({
    ...filesQuery(sweepId, number, trialId, attempt.number, !paused),
    enabled: !live(attempt),
  });

  if (live(attempt) || isMissing(files.error)) return null;

  return (
    <section aria-label="Files">
      <Title order={2} mb="xs">
        Files
      </Title>
      {files.isPending && <Loading what="files" />}
      {files.isError && <ErrorNote error={files.error} doing="Reading files" onRetry={() => void files.refetch()} />}
      {files.data && <Files list={files.data} trialId={trialId} attempt={attempt.number} />}
    </section>
  );
}

const states: Record<FileList["state"], string> = {
  pending: "They are being stored.",
  stored: "",
  lost: "They were not stored.",
  removed: "They were removed.",
  off: "",
};

function Files({ list, trialId, attempt }: { list: FileList; trialId: string; attempt: number }) {
  const why = [states[list.state], list.problem ?? ""].filter((text) => text !== "").join(" ");

  return (
    <>
      {why !== "" && <Note kind={list.state === "lost" ? "warn" : "plain"}>{why}</Note>}
      {list.state === "stored" && list.files === 0 && (
        <div className="card">It wrote no file to /trial/out that could be stored.</div>
      )}
      {list.files > 0 && (
        <>
          <p>
            {count(list.files, "file")}, {bytes(list.bytes)}
            {list.data.length < list.files && (
              <>
                . The first {count(list.data.length, "file")} are shown; <code>berth trial files</code> lists all.
              </>
            )}
          </p>
          <Table
            label="Files of the trial"
            heads={["Path", right("Size"), "SHA-256"]}
            rows={list.data.map((file) => ({
              key: file.path,
              cells: [
                <Anchor href={fileAddress(trialId, file.path, attempt)} download className="mono break">
                  {file.path}
                </Anchor>,
                bytes(file.bytes),
                <span className="mono" title={file.sha256}>
                  {file.sha256.slice(0, 12)}
                </span>,
              ],
            }))}
          />
        </>
      )}
      {list.left_out > 0 && <LeftOut all={list.left_out} first={list.left_out_files} />}
    </>
  );
}

function LeftOut({ all, first }: { all: number; first: LeftOutFile[] }) {
  return (
    <details style={{ marginTop: 8 }}>
      <summary>{count(all, "file was", "files were")} left out</summary>
      <Table
        label="Files that were left out"
        heads={["Path", "Why"]}
        rows={first.map((file, i) => ({
          key: String(i),
          cells: [<span className="mono break">{file.path}</span>, file.reason],
        }))}
      />
    </details>
  );
}
