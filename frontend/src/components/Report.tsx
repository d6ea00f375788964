import { Title } from "@mantine/core";
import { Facts, type Fact } from "@/components/Facts";
import { Note } from "@/components/Note";
import { right, Table } from "@/components/Table";
import { bytes, count, decimal, duration, gpuName, percent } from "@/lib/format";
import { failureText } from "@/lib/states";
import type { SweepReport } from "@/services/sweeps";

/** A sweep's use, and the saving by packing. */
export function Report({ report }: { report: SweepReport }) {
  const totals = [
    { name: "GPUs", place: "GPU", data: report.gpu },
    { name: "Cores of machines", place: "Machine", data: report.cores },
  ].filter(({ data }) => data.attempts > 0);

  if (totals.length === 0) {
    return <Note kind="plain">No attempt has started yet. The report appears with the first one.</Note>;
  }

  return (
    <div className="parts">
      {!report.ended && <Note kind="plain">The sweep goes on: these are the figures so far.</Note>}
      {report.missing_trials > 0 && (
        <Note kind="warn">
          What {count(report.missing_trials, "trial")} used is not in the database, so it is missing here.
        </Note>
      )}
      {totals.map(({ name, place, data }) => (
        <section key={name} className="card" aria-label={name}>
          <Title order={2} mb="sm">
            {name}
          </Title>
          <Facts facts={factsOf(place, data)} />
        </section>
      ))}
      {report.notes.length > 0 && (
        <section className="card" aria-label="In words">
          <Title order={2}>In words</Title>
          <ul style={{ margin: "8px 0 0", paddingLeft: 18 }}>
            {report.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </section>
      )}
      <Places places={report.places} />
      <Losses report={report} />
    </div>
  );
}

type Totals = SweepReport["gpu"];

function factsOf(place: string, totals: Totals): Fact[] {
  // Attempts that ran beside others count with their own time, which may be longer than alone.
  const most = totals.alone_bounded > 0 ? "at most " : "";
  const facts: Fact[] = [{ name: `${place} time in use`, value: duration(totals.used_seconds) }];
  if (totals.used_seconds - totals.charged_seconds > totals.used_seconds / 100) {
    facts.push({ name: "Charged, beside other sweeps", value: duration(totals.charged_seconds) });
  }
  if (totals.max_at_once > 1 && totals.alone_seconds > 0 && totals.used_seconds > 0) {
    const gain = Number((totals.alone_seconds / totals.used_seconds).toFixed(1));
    facts.push(
      { name: "One trial at a time would take", value: `${most}${duration(totals.alone_seconds)}` },
      { name: "By packing", value: `${most}${decimal(gain)} times the work in that time` },
    );
  }
  facts.push(
    {
      name: `Trials at once on one ${place === "GPU" ? place : "machine"}`,
      value: `${totals.at_once.toFixed(1)} on average, ${totals.max_at_once} at most`,
    },
    { name: "Ran", value: `${count(totals.trials, "trial")} in ${count(totals.attempts, "attempt")}` },
  );
  if (totals.measured_attempts > 0) {
    facts.push({
      name: "Peak of reserved memory",
      value: `${percent(totals.peak_bytes / Math.max(totals.peak_reserved_bytes, 1))} of ${bytes(totals.peak_reserved_bytes / totals.measured_attempts)} on average`,
    });
  }
  if (totals.default_byte_seconds > 0) {
    facts.push({
      name: "Reserved, against TensorFlow's default",
      value: percent(totals.reserved_byte_seconds / totals.default_byte_seconds),
    });
  }

  return facts;
}

function Places({ places }: { places: SweepReport["places"] }) {
  return (
    <section aria-label="Where trials ran">
      <Title order={2} mb="xs">
        Where trials ran
      </Title>
      <Table
        label="Where trials ran"
        heads={["Place", right("Memory"), right("Trials"), right("At once, mean"), right("At most"), right("In use")]}
        rows={places.map((place) => ({
          key: place.host_id + (place.device_id ?? ""),
          cells: [
            `${place.host}, ${place.device_id === undefined ? "cores" : `${place.model ?? "GPU"} ${gpuName(place.device_id)}`}`,
            bytes(place.memory_bytes),
            place.trials,
            place.at_once.toFixed(1),
            place.max_at_once,
            percent(place.busy_share),
          ],
        }))}
      />
    </section>
  );
}

function Losses({ report: { losses, ended, missing_trials } }: { report: SweepReport }) {
  if (losses.length === 0) {
    if (missing_trials > 0) return null;
    if (!ended) return <Note kind="plain">No attempt has been lost so far.</Note>;

    return <Note kind="good">No attempt was lost: each gave a result.</Note>;
  }

  return (
    <section aria-label="Attempts without a result">
      <Title order={2} mb="xs">
        Attempts without a result
      </Title>
      <Table
        label="Attempts without a result"
        heads={["Cause", right("Attempts"), right("Repeated"), right("Time")]}
        rows={losses.map((loss) => ({
          key: loss.cause,
          cells: [failureText(loss.cause), loss.attempts, loss.repeated, duration(loss.seconds)],
        }))}
      />
    </section>
  );
}
