import { Button } from "@mantine/core";
import type { DeviceAction } from "@/components/HostCard";
import { Icon, type IconName } from "@/components/Icon";
import { Note } from "@/components/Note";
import { ago, percent } from "@/lib/format";
import { deviceBlocks, deviceParts, modeText } from "@/lib/packing";
import { PackingBar } from "@/plots/PackingBar";
import { PackingMap } from "@/plots/PackingMap";
import type { Device, Host, Lease } from "@/services/hosts";

interface Props {
  device: Device;
  /** host is its machine: a GPU takes trials only when that does. */
  host: Pick<Host, "name" | "state">;
  leases: Lease[];
  now: number;
  readOnly: boolean;
  onAction: (action: DeviceAction, device: Device) => void;
}

type Look = [text: string, icon: IconName, color: string];

const hostLooks: Partial<Record<Host["state"], Look>> = {
  draining: ["Its machine drains", "pause", "var(--warn)"],
  unready: ["Its machine is not ready", "warning", "var(--warn)"],
  lost: ["Its machine is lost", "cross", "var(--bad)"],
};

/** A GPU: how full it is, how its trials share it, and why. */
export function DeviceRow({ device, host, leases, now, readOnly, onAction }: Props) {
  const cordoned = device.cordoned_at !== undefined;
  const broken = device.problem !== undefined && device.problem !== "";
  const [text, icon, color]: Look = broken
    ? ["Takes no trials", "cross", "var(--bad)"]
    : cordoned
      ? ["Cordoned", "pause", "var(--warn)"]
      : (hostLooks[host.state] ?? ["Ready", "check", "var(--done)"]);
  const { advice } = device;

  return (
    <li style={{ borderTop: "1px solid var(--line)", paddingTop: 10 }}>
      <div style={{ display: "flex", flexWrap: "wrap", gap: 8, justifyContent: "space-between", marginBottom: 6 }}>
        <div style={{ minWidth: 0 }}>
          <strong>{device.model}</strong>
          {device.profile !== undefined && ` ${device.profile}`}
          {device.simulated === true && " (no real card; see docs/gpus.md)"}{" "}
          <span className="state">
            <Icon name={icon} color={color} />
            {text}
          </span>
          <div className="mono clip" style={{ color: "var(--mantine-color-dimmed)" }}>
            {device.id}
          </div>
        </div>
        {!readOnly && (
          <Button
            size="xs"
            variant="default"
            onClick={() => onAction(cordoned ? "uncordon" : "cordon", device)}
            aria-label={`${cordoned ? "Uncordon" : "Cordon"} ${device.id} of ${host.name}`}
          >
            {cordoned ? "Uncordon" : "Cordon…"}
          </Button>
        )}
      </div>
      <div style={{ display: "grid", gap: 8 }}>
        {broken && <Note kind="bad">{device.problem}</Note>}
        {device.mps_problem !== undefined && device.mps_problem !== "" && <Note kind="warn">{device.mps_problem}</Note>}
        {device.cordoned_at !== undefined && (
          <Note kind="warn">
            It takes no new trials, since {ago(device.cordoned_at, now)}.{" "}
            {device.cordon_reason ?? "No reason was given."}
          </Note>
        )}
        <PackingBar label={`Memory of ${device.model}`} total={device.memory_bytes} parts={deviceParts(device)} />
        <PackingMap label={`Attempts on ${device.id}`} blocks={deviceBlocks(device, leases)} now={now} />
        <div style={{ fontSize: 14 }}>
          {device.attempts === 1 ? "1 attempt" : `${device.attempts} attempts`} now
          {device.exclusive === true && ", which has the GPU for itself"}. Shared by: {modeText(device.mode)}.
          {device.activity_reserved !== undefined &&
            device.activity_reserved > 0 &&
            ` Busy by measurement: ${percent(device.activity_reserved / 1000)}.`}
        </div>
        {advice && (
          <div style={{ fontSize: 14 }}>
            <strong>
              {advice.trying ? "Being measured" : "Advice"}: {modeText(advice.mode)}
              {advice.at_once > 0 && `, ${advice.at_once} at once${advice.capped ? " and no more" : ""}`}.
            </strong>{" "}
            {advice.why}
          </div>
        )}
      </div>
    </li>
  );
}
