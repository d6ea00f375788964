import { Title } from "@mantine/core";
import { Facts, type Fact } from "@/components/Facts";
import { When } from "@/components/When";
import { PeakBar } from "@/components/PeakBar";
import { bytes, cores, count, duration, percent } from "@/lib/format";
import { gpuBars, gpuOf, labelText, margin, sourceText } from "@/lib/probes";
import { SizeBars } from "@/plots/SizeBars";
import type { Device } from "@/services/hosts";
import type { Diagnosis, Footprint } from "@/services/probes";

interface Props {
  footprint: Footprint;
  /** gpus are the present GPUs, to compare with; undefined = not known. */
  gpus: Device[] | undefined;
}

/** The measured need of a shape on one class of device, and the advice. */
export function FootprintCard({ footprint, gpus }: Props) {
  return (
    <section className="card" aria-label={`On ${footprint.device_class}`}>
      <Title order={2} mb="xs">
        {footprint.device_class === "cpu" ? "On cores" : `On ${footprint.device_class}`}
      </Title>
      <PeakBar label="Machine memory" reserved={footprint.reserved_bytes} peak={footprint.memory_peak_bytes} />
      {footprint.device_class !== "cpu" && <AgainstDefault footprint={footprint} gpus={gpus} />}
      <div style={{ height: 12 }} />
      <Facts facts={factsOf(footprint)} />
      {footprint.diagnosis && <Advice diagnosis={footprint.diagnosis} />}
    </section>
  );
}

function factsOf(footprint: Footprint): Fact[] {
  const { device_phases: phases, device_activity: activity, memory_peak_bytes: peak } = footprint;
  const { device_peak_bytes: gpuPeak = 0, device_reserved_bytes: gpuReserved = 0 } = footprint;
  const measured = footprint.samples > 0;
  const facts: Fact[] = [
    { name: "Peak", value: peak === 0 ? "not measured" : bytes(peak) },
    {
      name: "Next attempt reserves",
      value: footprint.reserved_bytes === 0 ? "not known" : bytes(footprint.reserved_bytes),
    },
    { name: "Margin over the peak", value: margin(footprint.reserved_bytes, peak) },
    { name: "Duration, mean", value: measured ? duration(footprint.duration_seconds) : "not measured" },
    {
      name: "Cores used, mean",
      value: !measured
        ? "not measured"
        : footprint.cpu_milli === 0
          ? "not known: the machine was crowded"
          : cores(footprint.cpu_milli),
    },
    { name: "Measured by", value: `${sourceText(footprint.source)}, ${count(footprint.samples, "attempt")}` },
    { name: "Measured", value: <When at={footprint.measured_at} /> },
  ];
  const add = (name: string, n: number | undefined, write: (n: number) => string) => {
    if (n !== undefined && n > 0) facts.push({ name, value: write(n) });
  };
  add("Floor: this ran out of memory", footprint.memory_floor_bytes, bytes);
  add("GPU peak", gpuPeak, bytes);
  add("GPU, next attempt reserves", gpuReserved, bytes);
  if (gpuPeak > 0 && gpuReserved > 0)
    facts.push({ name: "GPU, margin over the peak", value: margin(gpuReserved, gpuPeak) });
  add("GPU at the start", phases?.start_bytes, bytes);
  add("GPU in training", phases?.training_bytes, bytes);
  add("GPU in validation", phases?.validation_bytes, bytes);
  add("A training step, mean", footprint.step_seconds, duration);
  add("SMs had work", activity.sm_milli / 1000, percent);
  add("Memory bandwidth used", activity.dram_milli / 1000, percent);
  add("Tensor cores in use", activity.tensor_milli / 1000, percent);

  return facts;
}

/** The shape's need of a GPU, beside TensorFlow's default mode. */
function AgainstDefault({ footprint, gpus }: Props) {
  const gpu = gpus && gpuOf(footprint, gpus);
  const bars = gpuBars(footprint, gpu);
  if (bars.length === 0) return null;

  return (
    <section aria-label="GPU memory" style={{ marginTop: 12 }}>
      <Title order={3} mb={4}>
        GPU memory{gpu && `, of ${bytes(gpu.memory_bytes)}`}
      </Title>
      <SizeBars whole={gpu?.memory_bytes} bars={bars} />
      <p className="chartnote" style={{ margin: "6px 0 0" }}>
        {gpu?.default_mode_bytes !== undefined &&
          "The default mode is an estimate for a card of this size, by what TensorFlow 2.21 took of one NVIDIA H200; it was not run here. "}
        {gpus && !gpu && "No GPU of this kind is there now, so its default mode is not estimated. "}
        {(footprint.device_peak_bytes ?? 0) > 0
          ? "The peak is what attempts held as Berth runs them, with TF_FORCE_GPU_ALLOW_GROWTH=true: TensorFlow takes what it needs."
          : "Its peak was not measured."}
      </p>
    </section>
  );
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
