import { Button, Title } from "@mantine/core";
import { Icon } from "@/components/Icon";
import { PeakBar } from "@/components/PeakBar";
import { between, cores, zoned } from "@/lib/format";
import { failureText } from "@/lib/states";
import { useNow } from "@/lib/useNow";
import type { Attempt } from "@/services/trials";

interface Props {
  attempts: Attempt[];
  chosen: string | undefined;
  hostNames: Map<string, string>;
  onChoose: (number: number) => void;
}

const sources = {
  file: "its metrics file",
  stdout: "what it printed",
  tensorboard: "its event files",
  shim: "Keras, through the shim",
};

/** Each launch of a trial, the newest first: its place, its reservation and use, and its end. */
export function Attempts({ attempts, chosen, hostNames, onChoose }: Props) {
  const now = useNow();

  return (
    <section aria-label="Attempts">
      <Title order={2} mb="xs">
        Attempts
      </Title>
      <ul className="plain" style={{ display: "grid", gap: 8 }}>
        {attempts.toReversed().map((attempt) => (
          <li key={attempt.id} className="card" aria-current={attempt.id === chosen ? "true" : undefined}>
            <div style={{ display: "flex", flexWrap: "wrap", gap: "8px 24px", alignItems: "flex-start" }}>
              <div style={{ flex: "1 1 220px" }}>
                <strong>Attempt {attempt.number}</strong>
                {attempt.stage !== "main" && `, stage ${attempt.stage}`}
                {attempt.purpose === "probe" && " (measures its shape)"} <Ending attempt={attempt} />
                <div style={{ fontSize: 13, color: "var(--mantine-color-dimmed)" }}>
                  {hostNames.get(attempt.host_id) ?? attempt.host_id}
                  {attempt.device_class !== undefined && attempt.device_id !== undefined && `, ${attempt.device_class}`}
                  , {cores(attempt.demand.cpu_milli)},{" "}
                  <time title={zoned(attempt.placed_at)}>{between(attempt.started_at, attempt.finished_at, now)}</time>
                  {attempt.exit_code !== undefined && `, exit code ${attempt.exit_code}`}
                  {attempt.metric_source !== undefined && `, value from ${sources[attempt.metric_source]}`}
                </div>
                {attempt.resumed !== undefined && attempt.resumed !== "" && (
                  <div className="break" style={{ fontSize: 13 }}>
                    Resumed {attempt.resumed}
                  </div>
                )}
              </div>
              <div style={{ flex: "2 1 260px", display: "grid", gap: 6 }}>
                <PeakBar
                  label="Machine memory"
                  reserved={attempt.demand.memory_bytes}
                  peak={attempt.usage.memory_peak_bytes}
                  runs={attempt.finished_at === undefined}
                />
                <PeakBar
                  label="GPU memory"
                  reserved={attempt.demand.device_bytes ?? 0}
                  peak={attempt.usage.device_peak_bytes ?? 0}
                  runs={attempt.finished_at === undefined}
                />
              </div>
              {attempts.length > 1 && (
                <Button
                  size="xs"
                  variant="default"
                  disabled={attempt.id === chosen}
                  onClick={() => onChoose(attempt.number)}
                >
                  {attempt.id === chosen ? "Shown below" : "Show below"}
                </Button>
              )}
            </div>
            {attempt.failure_kind !== "ok" && attempt.message !== undefined && attempt.message !== "" && (
              <p style={{ margin: "8px 0 0" }} className="break">
                {attempt.message}
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function Ending({ attempt }: { attempt: Attempt }) {
  if (attempt.state === "placed")
    return (
      <span className="state">
        <Icon name="clock" color="var(--wait)" />
        Starting
      </span>
    );
  if (attempt.state === "running")
    return (
      <span className="state">
        <Icon name="play" color="var(--run)" />
        Running
      </span>
    );

  const good = attempt.failure_kind === "ok";
  const stopped = attempt.failure_kind === "pruned";
  const memory = attempt.failure_kind === "host_oom" || attempt.failure_kind === "device_oom";
  const reason = failureText(attempt.failure_kind);
  const text = attempt.state !== "abandoned" ? reason : reason === "" ? "Given up" : `Given up: ${lower(reason)}`;

  return (
    <span className="state" style={{ whiteSpace: "normal" }}>
      <Icon
        name={good ? "check" : stopped ? "square" : memory ? "warning" : "cross"}
        color={good ? "var(--done)" : stopped ? "var(--wait)" : memory ? "var(--warn)" : "var(--bad)"}
      />
      {text}
    </span>
  );
}
