import { Button, FileButton, Group } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useRef, useState } from "react";
import { Confirm } from "@/components/Confirm";
import { ReadOnly } from "@/components/ReadOnly";
import { PageTitle } from "@/components/PageTitle";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { PreviewPanel } from "@/components/PreviewPanel";
import { ProblemList } from "@/components/ProblemList";
import { SweepForm, type KeptRow } from "@/components/SweepForm";
import { SweepPicker } from "@/components/SweepPicker";
import { forgetKey, keyFor } from "@/lib/keys";
import { readForm } from "@/lib/sweepFile";
import { lineOf, placeOf } from "@/lib/sweepPlaces";
import { useDebounced } from "@/lib/useDebounced";
import { exampleText } from "@/routes/example";
import { usePaused } from "@/routes/usePaused";
import { useShowSweep } from "@/routes/useShowSweep";
import { useCanSteer } from "@/services/session";
import { previewQuery, schemaQuery, submit, sweepsQuery, validate, type ProblemItem } from "@/services/sweeps";

const YamlEditor = lazy(() => import("@/components/YamlEditor"));

interface Props {
  start: string;
  /** origin is the text before any typing; undefined = not known. */
  origin: string | undefined;
  onText: (text: string) => void;
  onStartOver: () => void;
  /** onLaunched gets the sent text: the user may have typed more since. */
  onLaunched: (sent: string) => void;
}

/** A text, or the beginning of one, that would replace the user's. */
interface Replacing {
  by: string;
  action: string;
  go: () => void;
}

/** One text, which the form and the editor both change; checks and the preview follow it. */
export function NewSweep({ start, origin, onText, onStartOver, onLaunched }: Props) {
  const navigate = useNavigate();
  const canSteer = useCanSteer();
  const [ask, setAsk] = useState<Replacing | null>(null);
  const resetFile = useRef<() => void>(null);
  const kept = useRef<KeptRow[]>([]);
  const [text, setText] = useState(start);
  const settled = useDebounced(text);
  const earlier = useInfiniteQuery(sweepsQuery({}));
  const schema = useQuery(schemaQuery);

  const change = (next: string) => {
    setText(next);
    onText(next);
  };
  const load = (next: string) => {
    kept.current = [];
    change(next);
  };

  const checked = useQuery({
    queryKey: ["validation", settled],
    queryFn: ({ signal }) => validate(settled, signal),
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const valid = checked.data?.valid === true && !checked.isPlaceholderData;
  const seen = useQuery({ ...previewQuery(settled, !usePaused()), enabled: valid });

  const launch = useMutation({
    mutationFn: (body: string) => submit(body, keyFor(body)),
    onMutate: useShowSweep(),
    onSuccess: (sweep, sent, show) => {
      forgetKey();
      onLaunched(sent);

      return show(sweep);
    },
  });

  // A text that is only here is not replaced without a question.
  const replace = (next: Replacing) => {
    if (text === origin || text === exampleText) next.go();
    else setAsk(next);
  };
  const openFile = async (file: File | null) => {
    resetFile.current?.(); // so that the same file can be opened again
    if (!file) return;
    const opened = (await file.text()).replace(/\r\n?/g, "\n");
    replace({ by: `the file ${file.name}`, action: "Open", go: () => load(opened) });
  };

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
          {origin !== undefined && text !== origin && (
            <Button
              size="xs"
              variant="default"
              onClick={() => replace({ by: "the text it began with", action: "Start over", go: onStartOver })}
            >
              Start over
            </Button>
          )}
          <Button
            size="xs"
            variant="default"
            onClick={() => replace({ by: "the example", action: "Use the example", go: () => load(exampleText) })}
          >
            Use the example
          </Button>
          <FileButton accept=".yaml,.yml,.json,text/*" resetRef={resetFile} onChange={(file) => void openFile(file)}>
            {(props) => (
              <Button size="xs" variant="default" {...props}>
                Open a file
              </Button>
            )}
          </FileButton>
          <Button
            disabled={!valid || settling || !canSteer}
            loading={launch.isPending}
            onClick={() => launch.mutate(text)}
          >
            Launch
          </Button>
        </Group>
      </Group>
      {!canSteer && <ReadOnly action="launch it" />}
      {ask && (
        <Confirm
          opened
          title="Replace what you typed?"
          action={ask.action}
          busy={false}
          error={null}
          onConfirm={() => {
            ask.go();
            setAsk(null);
          }}
          onClose={() => setAsk(null)}
        >
          <p>Your text will be replaced by {ask.by}.</p>
        </Confirm>
      )}
      {launch.isError && (
        <div style={{ marginBottom: 12 }}>
          <ErrorNote error={launch.error} doing="Launching" onRetry={() => launch.mutate(text)} />
        </div>
      )}
      <div className="columns">
        <section className="card" aria-label="Form">
          {model ? (
            <SweepForm text={text} model={model} problems={byPointer} kept={kept} onChange={change} />
          ) : (
            <Note kind="warn">The YAML cannot be read. Mend it in the editor, and the form is shown again.</Note>
          )}
        </section>
        <div style={{ display: "grid", gap: 16, minWidth: 0 }}>
          <section aria-label="Sweep file">
            <Suspense fallback={<Loading what="the editor" />}>
              <YamlEditor text={text} marks={marks} schema={schema.data} onChange={change} />
            </Suspense>
            {schema.isError && (
              <ErrorNote
                error={schema.error}
                doing="Reading what the editor suggests"
                onRetry={() => void schema.refetch()}
              />
            )}
          </section>
          {checked.isError ? (
            <ErrorNote error={checked.error} doing="Checking the file" onRetry={() => void checked.refetch()} />
          ) : (
            <ProblemList problems={problems} warnings={warnings} settling={settling} />
          )}
          {valid && seen.isPending && <Loading what="what would happen" />}
          {seen.data && <PreviewPanel preview={seen.data} old={!valid || settling || seen.isPlaceholderData} />}
          {valid && seen.isError && (
            <ErrorNote
              error={seen.error}
              doing={seen.data ? "Previewing again" : "Previewing"}
              onRetry={() => void seen.refetch()}
            />
          )}
        </div>
      </div>
    </>
  );
}

function located(text: string, items: ProblemItem[]) {
  return items.map((item) => {
    const range = placeOf(text, item);

    return { ...item, range, line: lineOf(text, range.from) };
  });
}
