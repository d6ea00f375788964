import { Button, CopyButton, Group } from "@mantine/core";
import { PageLink } from "@/components/links";
import { useMemo } from "react";
import { stringify } from "yaml";
import type { Sweep } from "@/services/sweeps";

/** The sweep file with all defaults filled in, as YAML. */
export function SpecTab({ sweep }: { sweep: Sweep }) {
  const text = useMemo(() => stringify(sweep.spec ?? {}, { lineWidth: 0 }), [sweep.spec]);
  const href = useMemo(() => `data:application/yaml;charset=utf-8,${encodeURIComponent(text)}`, [text]);

  return (
    <section aria-label="Spec">
      <Group mb="sm" gap="sm">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
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
