import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { PageTitle } from "@/components/PageTitle";
import { PageButton } from "@/components/links";
import { ErrorNote } from "@/components/ErrorNote";
import { Note } from "@/components/Note";
import { ReadOnly } from "@/components/ReadOnly";
import { forgetKey, keyFor } from "@/lib/keys";
import { exampleText } from "@/routes/example";
import { useShowSweep } from "@/routes/useShowSweep";
import { useCanSteer } from "@/services/session";
import { lacksImage, preview, submit, type ProblemItem, type Sweep } from "@/services/sweeps";

type Started = { sweep: Sweep } | { blocked: ProblemItem };

/** start first checks that the image exists: without it every trial would fail. */
async function start(): Promise<Started> {
  const blocked = lacksImage(await preview(exampleText));
  if (blocked) return { blocked };

  const sweep = await submit(exampleText, keyFor(exampleText));
  forgetKey();

  return { sweep };
}

/** The content for a newcomer in place of an empty table. */
export function FirstRun() {
  const canSteer = useCanSteer();
  const example = useMutation({
    mutationFn: start,
    onMutate: useShowSweep(),
    onSuccess: (result, _, show) => ("sweep" in result ? show(result.sweep) : undefined),
  });
  const blocked = example.data && "blocked" in example.data ? example.data.blocked : undefined;

  return (
    <div style={{ maxWidth: 720 }}>
      <PageTitle text="Try many settings at once" />
      <p>Berth runs your training program with many settings, as many at a time as its measured memory allows.</p>
      <dl className="card" style={{ display: "grid", gap: 12, margin: "0 0 16px" }}>
        <Word name="Sweep">one search: your image and command, the settings to try, and the metric to improve.</Word>
        <Word name="Trial">one choice of settings. It runs in a container of its own.</Word>
        <Word name="Probe">
          a run that measures how much memory trials of one kind need. Berth then reserves just that, so that many fit
          on one machine.
        </Word>
      </dl>
      <p>
        The example trains a small network on handwritten digits, in 24 short trials. Berth measures 4 of them first.
      </p>
      {canSteer ? (
        <Group>
          <Button onClick={() => example.mutate()} loading={example.isPending}>
            Start the example
          </Button>
          <PageButton to="/sweeps/new" variant="default">
            Write a sweep
          </PageButton>
        </Group>
      ) : (
        <ReadOnly action="start a sweep" />
      )}
      <div style={{ marginTop: 16 }} aria-live="polite">
        {example.isPending && "Looking for the example's image, then starting…"}
        {example.isError && <ErrorNote error={example.error} doing="Starting the example" />}
        {blocked && (
          <Note kind="warn">
            <strong>The example's image is not ready, so nothing was started.</strong> {blocked.detail}
            <p style={{ margin: "6px 0 0" }}>
              On the machine with Docker, run <code>make images</code> in Berth's source tree, then press the button
              again.
            </p>
          </Note>
        )}
      </div>
    </div>
  );
}

function Word({ name, children }: { name: string; children: string }) {
  return (
    <div>
      <dt style={{ fontWeight: 600 }}>{name}</dt>
      <dd style={{ margin: 0 }}>{children}</dd>
    </div>
  );
}
