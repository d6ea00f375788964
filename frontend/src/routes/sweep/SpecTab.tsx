import { Button, Group } from "@mantine/core";
import { PageLink } from "@/components/links";
import { useMemo } from "react";
import { useQuery } from "@tanstack/react-query";
import { Copy } from "@/components/Copy";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { yamlOf } from "@/lib/sweepFile";
import { sweepTextQuery, type Sweep } from "@/services/sweeps";

/** The sweep file with all defaults filled in, as YAML. */
export function SpecTab({ sweep }: { sweep: Sweep }) {
  const answer = useQuery(sweepTextQuery(sweep.id));
  const text = useMemo(() => yamlOf(answer.data ?? "", "spec"), [answer.data]);
  const href = useMemo(() => `data:application/yaml;charset=utf-8,${encodeURIComponent(text)}`, [text]);

  if (answer.isPending) return <Loading what="the file" />;
  if (answer.data === undefined) {
    return <ErrorNote error={answer.error} doing="Reading the file" onRetry={() => void answer.refetch()} />;
  }

  return (
    <section aria-label="Spec">
      <Group mb="sm" gap="sm">
        <Copy text={text} size="xs" variant="default" />
        <Button size="xs" variant="default" component="a" href={href} download={`${sweep.name}.yaml`}>
          Download
        </Button>
        <PageLink to="/sweeps/new" search={{ from: sweep.id }} fz={14}>
          Edit as a new sweep
        </PageLink>
      </Group>
      <p style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }}>
        The file with its defaults filled in. Every trial runs image{" "}
        <span className="mono break">{sweep.image_digest}</span>.
      </p>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard */}
      <pre className="log" tabIndex={0} aria-label="Sweep file">
        {text}
      </pre>
    </section>
  );
}
