import { Title } from "@mantine/core";
import { bytes, count } from "@/lib/format";
import { previewParts } from "@/lib/packing";
import { PackingBar } from "@/plots/PackingBar";
import type { PreviewDevice, PreviewFill, PreviewHost } from "@/services/sweeps";

const MOST_OPEN = 4;

/** How full each machine and GPU gets when the sweep starts now, and the binding limit there. */
export function PreviewHosts({ hosts }: { hosts: PreviewHost[] }) {
  if (hosts.length === 0) return null;
  const rest = hosts.slice(MOST_OPEN);

  return (
    <section aria-label="How full each machine gets" style={{ marginTop: 14 }}>
      <Title order={3} mb={4}>
        How full each machine gets
      </Title>
      <p className="chartnote">Reserved memory when the sweep starts now, beside what is held now.</p>
      <HostList hosts={hosts.slice(0, MOST_OPEN)} alone={hosts.length === 1} />
      {rest.length > 0 && (
        <details style={{ marginTop: 12 }}>
          <summary>{count(rest.length, "further machine")}</summary>
          <HostList hosts={rest} alone={false} />
        </details>
      )}
    </section>
  );
}

/** alone: the sentence above says why already. */
function HostList({ hosts, alone }: { hosts: PreviewHost[]; alone: boolean }) {
  return (
    <ul className="plain" style={{ display: "grid", gap: 14, marginTop: 6 }}>
      {hosts.map((host) => (
        <li key={host.id} style={{ display: "grid", gap: 6 }}>
          <div>
            <strong>{host.name}</strong>: {atOnce(host)}.{!alone && host.why !== "" && ` ${sentence(host.why)}`}
          </div>
          <Bar name="Machine memory" of={host.name} fill={host} />
          {(host.spill_bytes ?? 0) > 0 && (
            <div>{bytes(host.spill_bytes ?? 0)} of it is for what GPUs cannot hold (gpu_memory_spill).</div>
          )}
          {host.devices?.map((device, i) => (
            <div key={device.id}>
              <Bar name={deviceName(device, i)} of={host.name} fill={device} />
              {(device.problem ?? "") !== "" && <div>It takes no trials. {sentence(device.problem ?? "")}</div>}
            </div>
          ))}
        </li>
      ))}
    </ul>
  );
}

function Bar({ name, of, fill }: { name: string; of: string; fill: PreviewFill }) {
  if (fill.memory_bytes === undefined) return null;

  return (
    <div>
      <div style={{ fontSize: 13 }}>{name}</div>
      <PackingBar label={`${name} of ${of}`} total={fill.memory_bytes} parts={previewParts(fill)} />
    </div>
  );
}

function deviceName({ model, simulated }: PreviewDevice, i: number): string {
  return `GPU ${i + 1}: ${model}${simulated === true ? " (no real card)" : ""}`;
}

/** atOnce distinguishes idle machines, which the preview assumes, from the machines' present state. */
function atOnce({ at_once: idle, at_once_now: now = 0 }: PreviewHost): string {
  if (idle === now) return idle === 0 ? "no trial at once" : `${count(idle, "trial")} at once`;

  return `${count(idle, "trial")} at once when nothing else runs, ${now === 0 ? "none" : now} beside what runs now`;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
}
