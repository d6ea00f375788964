import { Title } from "@mantine/core";
import { Facts, type Fact } from "@/components/Facts";
import { When } from "@/components/When";
import { PeakBar } from "@/components/PeakBar";
import { bytes, cores, count, duration, percent } from "@/lib/format";
import { labelText, margin, sourceText } from "@/lib/probes";
import type { Diagnosis, Footprint } from "@/services/probes";

/** What was measured of a shape on one class of device, and what a person can do about it. */
export function FootprintCard({ footprint }: { footprint: Footprint }) {
  return (
    <section className="card" aria-label={`On ${footprint.device_class}`}>
      <Title order={2} mb="xs">
        {footprint.device_class === "cpu" ? "On cores" : `On ${footprint.device_class}`}
      </Title>
      <PeakBar label="Machine memory" reserved={footprint.reserved_bytes} peak={footprint.memory_peak_bytes} />
      <div style={{ height: 12 }} />
      <Facts facts={factsOf(footprint)} />
      {footprint.diagnosis && <Advice diagnosis={footprint.diagnosis} />}
    </section>
  );
}

function factsOf(footprint: Footprint): Fact[] {
  const { device_phases: phases, device_activity: activity } = footprint;
  const facts: Fact[] = [
    { name: "Peak", value: bytes(footprint.memory_peak_bytes) },
    { name: "Next attempt reserves", value: bytes(footprint.reserved_bytes) },
    { name: "Margin over the peak", value: margin(footprint) },
    { name: "Duration, mean", value: duration(footprint.duration_seconds) },
    {
      name: "Cores used, mean",
      value: footprint.cpu_milli === 0 ? "not known: the machine was crowded" : cores(footprint.cpu_milli),
    },
    { name: "Measured by", value: `${sourceText(footprint.source)}, ${count(footprint.samples, "attempt")}` },
    { name: "Measured", value: <When at={footprint.measured_at} /> },
  ];
  const add = (name: string, n: number | undefined, write: (n: number) => string) => {
    if (n !== undefined && n > 0) facts.push({ name, value: write(n) });
  };
  add("Floor: this ran out of memory", footprint.memory_floor_bytes, bytes);
  add("GPU peak", footprint.device_peak_bytes, bytes);
  add("GPU at the start", phases?.start_bytes, bytes);
  add("GPU in training", phases?.training_bytes, bytes);
  add("GPU in validation", phases?.validation_bytes, bytes);
  add("A training step, mean", footprint.step_seconds, duration);
  add("SMs had work", activity.sm_milli / 1000, percent);
  add("Memory bandwidth used", activity.dram_milli / 1000, percent);
  add("Tensor cores in use", activity.tensor_milli / 1000, percent);

  return facts;
}

function Advice({ diagnosis }: { diagnosis: Diagnosis }) {
  return (
    <div style={{ marginTop: 14 }}>
      <Title order={3}>{labelText(diagnosis.label)}</Title>
      {diagnosis.why !== undefined && <p style={{ margin: "4px 0 8px" }}>{diagnosis.why}</p>}
      <ul style={{ margin: 0, paddingLeft: 18 }}>
        {diagnosis.advice.map((piece) => (
          <li key={piece.about + piece.do}>
            <strong>{piece.do}</strong> {piece.evidence}
          </li>
        ))}
      </ul>
    </div>
  );
}
