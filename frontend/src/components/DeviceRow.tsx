import { Button } from "@mantine/core";
import type { DeviceAction } from "@/components/HostCard";
import { Icon } from "@/components/Icon";
import { Note } from "@/components/Note";
import { ago, percent } from "@/lib/format";
import { deviceBlocks, deviceParts, modeText } from "@/lib/packing";
import { PackingBar } from "@/plots/PackingBar";
import { PackingMap } from "@/plots/PackingMap";
import type { Device, Lease } from "@/services/hosts";

interface Props {
  device: Device;
  leases: Lease[];
  now: number;
  readOnly: boolean;
  onAction: (action: DeviceAction, device: Device) => void;
}

/** simulated says that a GPU is invented (berth dev --fake-gpus); the API says so in the model alone. */
export function simulated(device: Device): boolean {
  return device.model.startsWith("Simulated GPU");
}

/** A GPU: how full it is, how its trials share it, and why. */
export function DeviceRow({ device, leases, now, readOnly, onAction }: Props) {
  const cordoned = device.cordoned_at !== undefined;
  const broken = device.problem !== undefined && device.problem !== "";
  const { advice } = device;

  return (
    <li style={{ borderTop: "1px solid var(--line)", paddingTop: 10 }}>
      <div style={{ display: "flex", flexWrap: "wrap", gap: 8, justifyContent: "space-between", marginBottom: 6 }}>
        <div style={{ minWidth: 0 }}>
          <strong>{device.model}</strong>
          {device.profile !== undefined && ` ${device.profile}`}
          {simulated(device) && " (no real card; see docs/gpus.md)"}{" "}
          <span className="state">
            <Icon
              name={broken ? "cross" : cordoned ? "pause" : "check"}
              color={broken ? "var(--bad)" : cordoned ? "var(--warn)" : "var(--done)"}
            />
            {broken ? "Takes no trials" : cordoned ? "Cordoned" : "Ready"}
          </span>
          <div className="mono clip" style={{ color: "var(--mantine-color-dimmed)" }}>
            {device.id}
          </div>
        </div>
        {!readOnly && (
          <Button size="xs" variant="default" onClick={() => onAction(cordoned ? "uncordon" : "cordon", device)}>
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
