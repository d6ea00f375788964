import type { Stage } from "@/services/overview";
import type { Sweep, SweepReport } from "@/services/sweeps";

/** StageBox is a stage of a sweep with its outputs, by where they come from. */
export interface StageBox {
  name: string;
  /** Outputs that this sweep's trials made. */
  runs: number;
  /** Outputs that other sweeps made. */
  taken: number;
  /** Outputs that trials wait for. */
  waiting: number;
  /** Time of the runs. */
  seconds: number;
  /** Each output of the stage, there or not. */
  outputs: Stage[];
}

/** stageNames are the stages of a sweep's file, in order. */
export function stageNames(sweep: Sweep): string[] {
  const stages = sweep.spec?.stages;
  if (!Array.isArray(stages)) return [];

  return stages.flatMap((stage: { name?: unknown }) => (typeof stage.name === "string" ? [stage.name] : []));
}

/** stageBoxes counts the outputs of each stage. */
export function stageBoxes(sweep: Sweep, stages: Stage[]): StageBox[] {
  return stageNames(sweep).map((name) => {
    const keys = stages.filter((one) => one.stage === name);
    const made = keys.filter((one) => one.output !== undefined);
    const own = made.filter((one) => one.sweep_id === sweep.id);

    return {
      name,
      runs: own.length,
      taken: made.length - own.length,
      waiting: keys.filter((one) => one.output === undefined && one.open_trials > 0).length,
      seconds: own.reduce((sum, one) => sum + (one.output?.seconds ?? 0), 0),
      outputs: keys,
    };
  });
}

/** savedSeconds is what the succeeded trials saved by sharing. */
export function savedSeconds(stages: NonNullable<SweepReport["stages"]>): number {
  return stages.reduce((sum, stage) => sum + stage.seconds_alone - stage.seconds, 0);
}
