import { Button, Group, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { PageTitle } from "@/components/PageTitle";
import { isMissing } from "@/api/errors";
import { Confirm } from "@/components/Confirm";
import { ErrorNote } from "@/components/ErrorNote";
import { Facts } from "@/components/Facts";
import { FootprintCard } from "@/components/FootprintCard";
import { PageLink } from "@/components/links";
import { Loading } from "@/components/Loading";
import { ReadOnly } from "@/components/ReadOnly";
import { cores, value } from "@/lib/format";
import { valuesText } from "@/lib/probes";
import { hostsQuery } from "@/services/hosts";
import { forget, probeQuery, type Probe } from "@/services/probes";
import { useCanSteer } from "@/services/session";

export function ProbePage() {
  const { shapeKey } = useParams({ from: "/probes/$shapeKey" });
  const probe = useQuery(probeQuery(shapeKey));

  return (
    <>
      <nav aria-label="Where you are" style={{ fontSize: 14 }}>
        <PageLink to="/probes">Probes</PageLink> /
      </nav>
      {probe.isPending && <Loading what="the probe" />}
      {isMissing(probe.error) ? (
        <div className="card">
          <PageTitle text="Nothing was measured of this shape" />
          <p>Its first trial measures it, and it is shown here as soon as that has ended.</p>
          <PageLink to="/probes">All probes</PageLink>
        </div>
      ) : (
        probe.isError && (
          <ErrorNote error={probe.error} doing="Reading the probe" onRetry={() => void probe.refetch()} />
        )
      )}
      {probe.data && <Found probe={probe.data} />}
    </>
  );
}

function Found({ probe }: { probe: Probe }) {
  const canSteer = useCanSteer();
  const [asked, setAsked] = useState(false);
  const gpus = useQuery(hostsQuery(false)).data?.data.flatMap((host) => host.devices);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => forget(probe.shape_key),
    onSuccess: async () => {
      await navigate({ to: "/probes" });
      queries.removeQueries({ queryKey: ["probe"] });
      await queries.invalidateQueries({ queryKey: ["probes"] });
    },
  });

  return (
    <>
      <Group justify="space-between" mb="sm" align="flex-start">
        <PageTitle text={valuesText(probe)} />
        {canSteer ? (
          <Button size="xs" variant="default" onClick={() => setAsked(true)}>
            Forget…
          </Button>
        ) : (
          <ReadOnly action="forget it" />
        )}
      </Group>
      <div style={{ display: "grid", gap: 16 }}>
        {probe.footprints.map((footprint) => (
          <FootprintCard key={footprint.device_class} footprint={footprint} gpus={gpus} />
        ))}
        <section className="card" aria-label="Shape">
          <Title order={2} mb="xs">
            Shape
          </Title>
          <Facts
            facts={[
              { name: "Key", value: <span className="mono">{probe.shape_key}</span> },
              { name: "Image", value: <span className="mono">{probe.shape.image_digest}</span> },
              { name: "Command", value: <span className="mono">{probe.shape.command.join(" ")}</span> },
              { name: "Threads for", value: cores(probe.shape.cpu_milli) },
              ...Object.entries(probe.shape.values).map(([name, v]) => ({ name, value: value(v) })),
            ]}
          />
        </section>
      </div>
      <Confirm
        opened={asked}
        title="Forget what was measured?"
        action="Forget"
        danger
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        <p>
          The next trial of this shape measures it again. Do this after a change that Berth cannot see, such as new
          data.
        </p>
      </Confirm>
    </>
  );
}
