import { Button, FileButton, Group } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { PageTitle } from "@/components/PageTitle";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { PreviewPanel } from "@/components/PreviewPanel";
import { ProblemList } from "@/components/ProblemList";
import { SweepForm } from "@/components/SweepForm";
import { SweepPicker } from "@/components/SweepPicker";
import { forgetKey, keyFor } from "@/lib/keys";
import { lineOf, rangeOf, readForm } from "@/lib/sweepFile";
import { useDebounced } from "@/lib/useDebounced";
import { exampleText } from "@/routes/example";
import { preview, submit, sweepsQuery, validate, type ProblemItem } from "@/services/sweeps";

const YamlEditor = lazy(() => import("@/components/YamlEditor"));

interface Props {
  start: string;
  onText: (text: string) => void;
}

/** One text, which the form and the editor both change; checks and the preview follow it. */
export function NewSweep({ start, onText }: Props) {
  const navigate = useNavigate();
  const [text, setText] = useState(start);
  const settled = useDebounced(text);
  const earlier = useInfiniteQuery(sweepsQuery({}));

  const change = (next: string) => {
    setText(next);
    onText(next);
  };

  const checked = useQuery({
    queryKey: ["validation", settled],
    queryFn: ({ signal }) => validate(settled, signal),
    placeholderData: keepPreviousData,
    gcTime: 0,
    retry: false,
  });
  const valid = checked.data?.valid === true && !checked.isPlaceholderData;
  const seen = useQuery({
    queryKey: ["preview", settled],
    queryFn: ({ signal }) => preview(settled, signal),
    enabled: valid,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    retry: false,
  });

  const launch = useMutation({
    mutationFn: (body: string) => submit(body, keyFor(body)),
    onSuccess: (sweep) => {
      forgetKey();
      void navigate({ to: "/sweeps/$sweepId", params: { sweepId: sweep.id } });
    },
  });

  const problems = useMemo(() => located(settled, checked.data?.problems ?? []), [settled, checked.data]);
  const warnings = useMemo(() => located(settled, checked.data?.warnings ?? []), [settled, checked.data]);
  const marks = useMemo(
    () => [
      ...problems.map((item) => ({ ...item.range, severity: "error" as const, message: item.detail })),
      ...warnings.map((item) => ({ ...item.range, severity: "warning" as const, message: item.detail })),
    ],
    [problems, warnings],
  );
  const byPointer = useMemo(() => new Map(problems.map((item) => [item.pointer, item.detail])), [problems]);
  const model = useMemo(() => readForm(text), [text]);
  const settling = text !== settled || checked.isFetching;

  return (
    <>
      <Group justify="space-between" mb="sm">
        <PageTitle text="New sweep" />
        <Group gap="xs">
          <SweepPicker
            sweeps={earlier.data?.pages[0]?.data ?? []}
            onPick={(id) => void navigate({ to: "/sweeps/new", search: { from: id } })}
          />
          <Button size="xs" variant="default" onClick={() => change(exampleText)}>
            Use the example
          </Button>
          <FileButton accept=".yaml,.yml,.json,text/*" onChange={(file) => void file?.text().then(change)}>
            {(props) => (
              <Button size="xs" variant="default" {...props}>
                Open a file
              </Button>
            )}
          </FileButton>
          <Button disabled={!valid || settling} loading={launch.isPending} onClick={() => launch.mutate(text)}>
            Launch
          </Button>
        </Group>
      </Group>
      {launch.isError && (
        <div style={{ marginBottom: 12 }}>
          <ErrorNote error={launch.error} doing="Launching" onRetry={() => launch.mutate(text)} />
        </div>
      )}
      <div className="columns">
        <section className="card" aria-label="Form">
          {model ? (
            <SweepForm text={text} model={model} problems={byPointer} onChange={change} />
          ) : (
            <Note kind="warn">The YAML cannot be read. Mend it in the editor, and the form is shown again.</Note>
          )}
        </section>
        <div style={{ display: "grid", gap: 16, minWidth: 0 }}>
          <section aria-label="Sweep file">
            <Suspense fallback={<Loading what="the editor" />}>
              <YamlEditor text={text} marks={marks} onChange={change} />
            </Suspense>
          </section>
          {checked.isError ? (
            <ErrorNote error={checked.error} doing="Checking the file" onRetry={() => void checked.refetch()} />
          ) : (
            <ProblemList problems={problems} warnings={warnings} settling={settling} />
          )}
          {valid && seen.isError && (
            <ErrorNote error={seen.error} doing="Previewing" onRetry={() => void seen.refetch()} />
          )}
          {valid && seen.isPending && <Loading what="what would happen" />}
          {seen.data && !seen.isError && (
            <PreviewPanel preview={seen.data} old={!valid || settling || seen.isPlaceholderData} />
          )}
        </div>
      </div>
    </>
  );
}

function located(text: string, items: ProblemItem[]) {
  return items.map((item) => {
    const range = rangeOf(text, item.pointer);

    return { ...item, range, line: lineOf(text, range.from) };
  });
}
