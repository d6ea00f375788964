import { Title } from "@mantine/core";
import { Facts, type Fact } from "@/components/Facts";
import { Note } from "@/components/Note";
import { bytes, count, decimal, duration, percent } from "@/lib/format";
import { failureText } from "@/lib/states";
import type { SweepReport } from "@/services/sweeps";

/** What a sweep used, and what packing saved. */
export function Report({ report }: { report: SweepReport }) {
  const totals = [
    { name: "GPUs", data: report.gpu },
    { name: "Cores of machines", data: report.cores },
  ].filter(({ data }) => data.attempts > 0);

  if (totals.length === 0) {
    return <Note kind="plain">No attempt has started yet. The report appears with the first one.</Note>;
  }

  return (
    <div style={{ display: "grid", gap: 16 }}>
      {!report.ended && <Note kind="plain">The sweep goes on: these are the figures so far.</Note>}
      {report.missing_trials > 0 && (
        <Note kind="warn">
          What {count(report.missing_trials, "trial")} used is not in the database, so it is missing here.
        </Note>
      )}
      {totals.map(({ name, data }) => (
        <section key={name} className="card" aria-label={name}>
          <Title order={2} mb="sm">
            {name}
          </Title>
          <Facts facts={factsOf(data)} />
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
      <Losses losses={report.losses} />
    </div>
  );
}

type Totals = SweepReport["gpu"];

function factsOf(totals: Totals): Fact[] {
  // Attempts that ran beside others count with their own time, which may be longer than alone.
  const most = totals.alone_bounded > 0 ? "at most " : "";
  const facts: Fact[] = [
    { name: "One trial at a time would take", value: `${most}${duration(totals.alone_seconds)}` },
    { name: "Packed, they took", value: duration(totals.charged_seconds) },
  ];
  if (totals.charged_seconds > 0) {
    facts.push({
      name: "By packing",
      value: `${most}${decimal(Number((totals.alone_seconds / totals.charged_seconds).toFixed(1)))} times as fast`,
    });
  }
  facts.push(
    { name: "At once on a place", value: `${totals.at_once.toFixed(1)} in the mean, ${totals.max_at_once} at most` },
    { name: "Trials, attempts", value: `${totals.trials}, ${totals.attempts}` },
  );
  if (totals.measured_attempts > 0) {
    facts.push({
      name: "Peak of reserved memory",
      value: `${percent(totals.peak_bytes / Math.max(totals.peak_reserved_bytes, 1))} of ${bytes(totals.peak_reserved_bytes / totals.measured_attempts)} in the mean`,
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
      <div className="tablewrap">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Place</th>
              <th scope="col" className="right">
                Memory
              </th>
              <th scope="col" className="right">
                Trials
              </th>
              <th scope="col" className="right">
                At once, mean
              </th>
              <th scope="col" className="right">
                At most
              </th>
              <th scope="col" className="right">
                In use
              </th>
            </tr>
          </thead>
          <tbody>
            {places.map((place) => (
              <tr key={place.host_id + (place.device_id ?? "")}>
                <td>
                  {place.host}, {place.device_id === undefined ? "cores" : (place.model ?? "GPU")}
                </td>
                <td className="num right">{bytes(place.memory_bytes)}</td>
                <td className="num right">{place.trials}</td>
                <td className="num right">{place.at_once.toFixed(1)}</td>
                <td className="num right">{place.max_at_once}</td>
                <td className="num right">{percent(place.busy_share)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Losses({ losses }: { losses: SweepReport["losses"] }) {
  if (losses.length === 0) return <Note kind="good">No attempt was lost: each gave a result.</Note>;

  return (
    <section aria-label="Attempts without a result">
      <Title order={2} mb="xs">
        Attempts without a result
      </Title>
      <div className="tablewrap">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Cause</th>
              <th scope="col" className="right">
                Attempts
              </th>
              <th scope="col" className="right">
                Repeated
              </th>
              <th scope="col" className="right">
                Time
              </th>
            </tr>
          </thead>
          <tbody>
            {losses.map((loss) => (
              <tr key={loss.cause}>
                <td>{failureText(loss.cause)}</td>
                <td className="num right">{loss.attempts}</td>
                <td className="num right">{loss.repeated}</td>
                <td className="num right">{duration(loss.seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
