import { Button, Group, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { DeviceRow } from "@/components/DeviceRow";
import { Facts } from "@/components/Facts";
import { Icon, type IconName } from "@/components/Icon";
import { Note } from "@/components/Note";
import { ago, bytes, cores, count, decimal, shortId } from "@/lib/format";
import { hostBlocks, hostParts } from "@/lib/packing";
import { PackingBar } from "@/plots/PackingBar";
import { PackingMap } from "@/plots/PackingMap";
import type { Device, Host, Lease } from "@/services/hosts";

export type HostAction = "drain" | "ready" | "remove";
export type DeviceAction = "cordon" | "uncordon";

interface Props {
  host: Host;
  /** leases are the leases of all hosts. */
  leases: Lease[];
  now: number;
  /** readOnly: the caller may change nothing here. */
  readOnly?: boolean;
  /** canRemove: the caller may remove the machine, which only an admin may. */
  canRemove?: boolean;
  onHost: (action: HostAction, host: Host) => void;
  onDevice: (action: DeviceAction, device: Device) => void;
  /** children stand below all else. */
  children?: ReactNode;
}

const looks: Record<string, { text: string; icon: IconName; color: string }> = {
  ready: { text: "Ready", icon: "check", color: "var(--done)" },
  draining: { text: "Draining: takes no new trials", icon: "pause", color: "var(--warn)" },
  cordoned: { text: "Cordoned: takes only test attempts", icon: "pause", color: "var(--warn)" },
  kept: { text: "Ready, but not for one sweep", icon: "pause", color: "var(--warn)" },
  unready: { text: "Not ready", icon: "warning", color: "var(--warn)" },
  lost: { text: "Lost: its worker does not answer", icon: "cross", color: "var(--bad)" },
};

/** A machine: how full it is, whether it takes trials, and its GPUs. */
export function HostCard({
  host,
  leases,
  now,
  readOnly = false,
  canRemove = false,
  onHost,
  onDevice,
  children,
}: Props) {
  const cordoned = host.cordoned_at !== undefined;
  const kept = host.cordon_sweep !== undefined;
  const state = cordoned && host.state === "ready" ? (kept ? "kept" : "cordoned") : host.state;
  const look = looks[state] ?? { text: host.state, icon: "clock" as const, color: "var(--wait)" };

  return (
    <section className="card" aria-label={host.name}>
      <Group justify="space-between" align="flex-start" mb="xs">
        <div>
          <Title order={2}>{host.name}</Title>
          <span className="state">
            <Icon name={look.icon} color={look.color} />
            {look.text}
          </span>
        </div>
        <Group gap="xs" display={readOnly ? "none" : undefined}>
          {(host.state === "draining" || cordoned) && (
            <Button
              size="xs"
              variant="default"
              onClick={() => onHost("ready", host)}
              aria-label={`Make ready ${host.name}`}
            >
              Make ready
            </Button>
          )}
          {(host.state === "ready" || host.state === "unready") && (
            <Button size="xs" variant="default" onClick={() => onHost("drain", host)} aria-label={`Drain ${host.name}`}>
              Drain…
            </Button>
          )}
          {host.state === "lost" && canRemove && (
            <Button
              size="xs"
              variant="default"
              onClick={() => onHost("remove", host)}
              aria-label={`Remove ${host.name}`}
            >
              Remove…
            </Button>
          )}
        </Group>
      </Group>
      <div style={{ display: "grid", gap: 8, marginBottom: 12 }}>
        {host.problem !== undefined && host.problem !== "" && <Note kind="bad">{host.problem}</Note>}
        {host.cordoned_at !== undefined && (
          <Note kind="warn">
            {host.cordon_sweep === undefined ? (
              "It takes only test attempts"
            ) : (
              <>
                Of{" "}
                <Link to="/sweeps/$sweepId" params={{ sweepId: host.cordon_sweep }}>
                  sweep {shortId(host.cordon_sweep)}
                </Link>{" "}
                it takes only test attempts, of others all
              </>
            )}
            , since {ago(host.cordoned_at, now)}: {host.cordon_reason}
          </Note>
        )}
        {host.disk_warning !== undefined && host.disk_warning !== "" && <Note kind="warn">{host.disk_warning}</Note>}
        <PackingBar label={`Memory of ${host.name}`} total={host.memory_bytes} parts={hostParts(host)} />
        <PackingMap label={`Attempts on ${host.name}`} blocks={hostBlocks(host, leases)} now={now} />
      </div>
      <Facts
        facts={[
          {
            name: "Attempts",
            value: host.max_attempts > 0 ? `${host.attempts} of at most ${host.max_attempts}` : host.attempts,
          },
          { name: "Cores reserved", value: `${decimal(host.cpu_milli_reserved / 1000)} of ${cores(host.cpu_milli)}` },
          {
            name: "Disk free",
            value:
              host.disk_bytes === undefined
                ? bytes(host.disk_free_bytes)
                : `${bytes(host.disk_free_bytes)} of ${bytes(host.disk_bytes)}`,
          },
          { name: "Seen", value: ago(host.last_seen_at, now) },
        ]}
      />
      {host.exclusive === true && <p>One trial has the machine for itself.</p>}
      {host.devices.length > 0 && (
        <>
          <Title order={3} mt="md" mb="xs">
            {count(host.devices.length, "GPU")}
          </Title>
          <ul className="plain" style={{ display: "grid", gap: 14 }}>
            {host.devices.map((device) => (
              <DeviceRow
                key={device.id}
                device={device}
                host={host}
                leases={leases}
                now={now}
                readOnly={readOnly}
                onAction={onDevice}
              />
            ))}
          </ul>
        </>
      )}
      {children}
    </section>
  );
}
