import { Title } from "@mantine/core";
import { Facts } from "@/components/Facts";
import { Note } from "@/components/Note";
import { PreviewHosts } from "@/components/PreviewHosts";
import { right, Table } from "@/components/Table";
import { bytes, count, grouped, range, value } from "@/lib/format";
import type { Preview } from "@/services/sweeps";

const sizes: Record<string, string> = {
  spec: "from the file",
  measured: "measured",
  predicted: "predicted from measured shapes",
  unmeasured: "guess, not measured",
};

/** The prediction of a sweep on the present machines. old: the file was changed since. */
export function PreviewPanel({ preview, old }: { preview: Preview; old: boolean }) {
  return (
    <section className="card" aria-label="Preview" aria-busy={old}>
      <Title order={2} mb="xs">
        What would happen{old && ", before the last change"}
      </Title>
      <Facts
        facts={[
          { name: "Trials", value: preview.trials === 0 ? "known when it ends" : grouped(preview.trials) },
          {
            name: "Probes",
            value: `${count(preview.probes_needed, "to do", "to do")}, ${grouped(preview.probes_cached)} known`,
          },
          { name: "At once", value: preview.at_once === 0 ? "none" : grouped(preview.at_once) },
          {
            name: "Time",
            value: preview.duration
              ? range(preview.duration.min_seconds, preview.duration.max_seconds)
              : preview.probes_cached > 0
                ? "not known"
                : "known after the first probe",
          },
        ]}
      />
      <p style={{ margin: "10px 0 0" }}>{preview.why}</p>
      <PreviewHosts hosts={preview.hosts} />
      {preview.warnings.length > 0 && (
        <div style={{ marginTop: 10 }}>
          <Note kind="warn">
            {preview.warnings.map((item) => (
              <p key={item.code + item.pointer} style={{ margin: 0 }}>
                {item.detail}
              </p>
            ))}
          </Note>
        </div>
      )}
      {preview.shapes.length > 0 && (
        <details style={{ marginTop: 10 }}>
          <summary>{count(preview.shapes_total, "memory shape")}</summary>
          <Table
            label="Memory shapes"
            heads={["Values", right("Trials"), right("Each reserves"), "Size"]}
            rows={preview.shapes.map((shape) => ({
              key: shape.key,
              cells: [
                <span className="mono">
                  {Object.entries(shape.values)
                    .map(([name, v]) => `${name}=${value(v)}`)
                    .join(" ")}
                </span>,
                shape.trials,
                bytes(shape.memory_bytes) +
                  (shape.device_bytes === undefined ? "" : `, GPU ${bytes(shape.device_bytes)}`),
                sizes[shape.sized_by],
              ],
            }))}
          />
        </details>
      )}
    </section>
  );
}
