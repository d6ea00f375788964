import { bytes, gpuName } from "@/lib/format";
import type { Trial } from "@/services/trials";

/** The place of a trial's newest attempt, and its reservation and use there. */
export function LatestAttempt({ attempt }: { attempt: NonNullable<Trial["latest_attempt"]> }) {
  const { device_id: device, device_bytes: deviceBytes = 0, device_peak_bytes: devicePeak = 0 } = attempt;
  const memory = used(attempt.memory_bytes, attempt.memory_peak_bytes);

  return (
    <>
      <span className="clip" title={device === undefined ? attempt.host_name : `${attempt.host_name}, ${device}`}>
        {attempt.host_name}
        {device !== undefined && `, ${gpuName(device)}`}
        {attempt.stage !== "main" && `, stage ${attempt.stage}`}
      </span>
      <div
        className="num"
        style={{ fontSize: 12, color: "var(--mantine-color-dimmed)" }}
        title={device === undefined ? "" : `Machine memory: ${memory}`}
      >
        {device === undefined ? memory : `GPU ${used(deviceBytes, devicePeak)}`}
      </div>
    </>
  );
}

function used(reserved: number, peak: number): string {
  return peak > 0 ? `${bytes(reserved)}, peak ${bytes(peak)}` : `${bytes(reserved)} reserved`;
}
