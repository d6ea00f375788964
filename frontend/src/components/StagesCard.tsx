import { Title } from "@mantine/core";
import type { ReactNode } from "react";
import { PageLink } from "@/components/links";
import { count, duration, grouped } from "@/lib/format";
import type { StageBox } from "@/lib/stages";
import type { Stage } from "@/services/overview";
import type { Sweep } from "@/services/sweeps";

interface Props {
  sweepId: string;
  boxes: StageBox[];
  counts: Sweep["counts"];
  /** What sharing saved, in seconds. */
  saved: number;
  /** Not all outputs are counted. */
  part: boolean;
}

/** The stages of a sweep in the order in which they run, then the sweep's own command. */
export function StagesCard({ sweepId, boxes, counts, saved, part }: Props) {
  const done = counts.succeeded + counts.pruned + counts.failed + counts.infeasible + counts.canceled;

  return (
    <section className="card" aria-label="Stages">
      <Title order={2} mb={4}>
        Stages
      </Title>
      <div className="chartnote">
        {saved > 0 && `Sharing saved ${duration(saved)} of the time that the succeeded trials would take alone. `}
        {part && "Only the newest 500 outputs are counted."}
      </div>
      <ol className="stages">
        {boxes.map((box) => (
          <Box key={box.name} name={box.name}>
            {count(box.runs, "run")}
            {box.seconds > 0 && ` in ${duration(box.seconds)}`}
            {box.taken > 0 && <div>{grouped(box.taken)} taken over from other sweeps</div>}
            {box.waiting > 0 && <div>{grouped(box.waiting)} still to run</div>}
            {box.outputs.length > 0 && (
              <details>
                <summary>Trials by output</summary>
                <ul>
                  {box.outputs.map((stage) => (
                    <li key={stage.key}>
                      <PageLink to="/sweeps/$sweepId" params={{ sweepId }} search={{ tab: "trials", stage: stage.key }}>
                        {stage.key.slice(0, 12)}
                      </PageLink>{" "}
                      {maker(stage, sweepId)}
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </Box>
        ))}
        <Box name="main">{count(done, "trial")} done</Box>
      </ol>
    </section>
  );
}

/** maker says who made an output, and how long that took. */
function maker({ output, sweep_id: sweep, sweep_name: name, trial }: Stage, here: string): string {
  if (output === undefined) return "not there";

  return `by trial ${String(trial)}${sweep === here ? "" : ` of ${name}`} in ${duration(output.seconds)}`;
}

function Box({ name, children }: { name: string; children: ReactNode }) {
  return (
    <li>
      <strong>{name}</strong>
      <div className="tabular">{children}</div>
    </li>
  );
}
