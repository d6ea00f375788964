import { TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouteContext } from "@tanstack/react-router";
import { useState, useSyncExternalStore } from "react";
import { PageTitle } from "@/components/PageTitle";
import { Confirm } from "@/components/Confirm";
import { ErrorNote } from "@/components/ErrorNote";
import { HostCard, type DeviceAction, type HostAction } from "@/components/HostCard";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { QueueTable } from "@/components/QueueTable";
import { ReadOnly } from "@/components/ReadOnly";
import { useNow } from "@/lib/useNow";
import { HostHistory } from "@/routes/machines/HostHistory";
import {
  cordon,
  drain,
  hostsQuery,
  leasesQuery,
  makeReady,
  queueQuery,
  removeMachine,
  uncordon,
} from "@/services/hosts";
import { useCanSteer, useIsAdmin } from "@/services/session";

interface Ask {
  action: HostAction | DeviceAction;
  id: string;
  /** name tells it from others: a machine may have eight GPUs of one model. */
  name: string;
}

const titles: Record<Ask["action"], { title: string; action: string; text: string }> = {
  drain: { title: "Drain", action: "Drain", text: "takes no new trials. Trials that run there go on." },
  ready: { title: "Make ready", action: "Make ready", text: "takes trials again." },
  remove: {
    title: "Remove",
    action: "Remove",
    text: "goes with its reservations. Its trials run again elsewhere. Remove it only when it will not come back.",
  },
  cordon: {
    title: "Cordon",
    action: "Cordon",
    text: "takes no new trials, until a person uncordons it. Trials that run there go on.",
  },
  uncordon: { title: "Uncordon", action: "Uncordon", text: "takes trials again." },
};

export function MachinesPage() {
  const { live } = useRouteContext({ from: "__root__" });
  const paused = useSyncExternalStore(live.subscribe, live.current) === "paused";
  const hosts = useQuery(hostsQuery(!paused));
  const leases = useQuery(leasesQuery(!paused));
  const queue = useQuery(queueQuery(!paused));
  const queries = useQueryClient();
  const canSteer = useCanSteer();
  const isAdmin = useIsAdmin();
  const now = useNow();
  const [ask, setAsk] = useState<Ask | null>(null);
  const [reason, setReason] = useState("");

  const act = useMutation({
    mutationFn: ({ action, id }: Ask): Promise<unknown> => {
      switch (action) {
        case "drain":
          return drain(id);
        case "ready":
          return makeReady(id);
        case "remove":
          return removeMachine(id);
        case "cordon":
          return cordon(id, reason.trim());
        case "uncordon":
          return uncordon(id);
      }
    },
    onSuccess: async (_, answered) => {
      setAsk((now) => (now === answered ? null : now)); // another question may be open by now
      await Promise.all(["hosts", "leases", "queue"].map((key) => queries.invalidateQueries({ queryKey: [key] })));
    },
  });

  const start = (next: Ask) => {
    if (!act.isPending) act.reset();
    setReason("");
    if (next.action === "ready" || next.action === "uncordon") act.mutate(next);
    else setAsk(next);
  };

  return (
    <>
      <PageTitle text="Machines" />
      {!canSteer && <ReadOnly action="change machines" />}
      {hosts.isPending && <Loading what="machines" />}
      {hosts.isError && <ErrorNote error={hosts.error} doing="Reading machines" onRetry={() => void hosts.refetch()} />}
      {act.isError && act.variables !== ask && (
        <ErrorNote error={act.error} doing={`${titles[act.variables.action].title} ${act.variables.name}`} />
      )}
      {hosts.data?.data.length === 0 && (
        <Note kind="plain">
          No machine is known. Start <code>berth worker</code> on a machine with Docker; it registers by itself.
        </Note>
      )}
      <div className="parts">
        {hosts.data?.data.map((host) => (
          <HostCard
            key={host.id}
            host={host}
            leases={leases.data ?? []}
            now={now}
            readOnly={!canSteer}
            canRemove={isAdmin}
            onHost={(action) => start({ action, id: host.id, name: host.name })}
            onDevice={(action, device) =>
              start({ action, id: device.id, name: `${device.model} ${device.id} of ${host.name}` })
            }
          >
            <HostHistory host={host} live={!paused} />
          </HostCard>
        ))}
        {leases.isError && (
          <ErrorNote
            error={leases.error}
            doing="Reading what holds the machines"
            onRetry={() => void leases.refetch()}
          />
        )}
        {queue.isError && (
          <ErrorNote error={queue.error} doing="Reading the queue" onRetry={() => void queue.refetch()} />
        )}
        {queue.data && <QueueTable rows={queue.data.data} total={queue.data.total} now={now} />}
      </div>
      {ask && (
        <Confirm
          opened
          title={`${titles[ask.action].title} ${ask.name}?`}
          action={titles[ask.action].action}
          danger={ask.action === "remove"}
          busy={act.isPending && act.variables === ask}
          error={act.variables === ask ? act.error : null}
          onConfirm={() => act.mutate(ask)}
          onClose={() => setAsk(null)}
        >
          <p>
            {ask.name} {titles[ask.action].text}
          </p>
          {ask.action === "cordon" && (
            <TextInput
              label="Reason"
              description="Trials that wait for this GPU show it"
              maxLength={500}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
          )}
        </Confirm>
      )}
    </>
  );
}
