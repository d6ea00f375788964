import { Button, Group, Menu, NumberInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { Confirm } from "@/components/Confirm";
import { ErrorNote } from "@/components/ErrorNote";
import { ReadOnly } from "@/components/ReadOnly";
import { controlsOf, type Control } from "@/lib/controls";
import { count, shortId } from "@/lib/format";
import { newKey } from "@/lib/keys";
import { useShowSweep } from "@/routes/useShowSweep";
import { useCanSteer } from "@/services/session";
import * as api from "@/services/sweeps";
import type { Sweep } from "@/services/sweeps";

interface Ask {
  control: Control;
  key: string; // idempotency key of a new sweep: kept while the question is open, so that a retry makes no second one
}

/** The user's commands for a sweep. The server may refuse; its reason is shown. */
export function SweepControls({ sweep }: { sweep: Sweep }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const router = useRouter();
  const showLater = useShowSweep();
  const canSteer = useCanSteer();
  const [ask, setAsk] = useState<Ask | null>(null);
  const [parallel, setParallel] = useState<number | string>(sweep.max_parallel);
  const can = controlsOf(sweep);

  const action = useMutation({
    mutationFn: async ({ control, key }: Ask) => {
      switch (control) {
        case "pause":
          return api.pause(sweep.id);
        case "resume":
          return api.resume(sweep.id);
        case "stop":
          return api.stop(sweep.id);
        case "cancel":
          return api.cancel(sweep.id);
        case "parallel":
          return api.setParallel(sweep.id, Number(parallel));
        case "clone":
          return api.clone(sweep.id, key);
        case "rerun":
          return api.rerunFailed(sweep.id, key);
        case "delete":
          await api.remove(sweep.id);
      }

      return null;
    },
    onMutate: () => ({ show: showLater(), from: router.state.location.pathname }),
    onSuccess: async (result, answered, { show, from }) => {
      const { control } = answered;
      setAsk((now) => (now === answered ? null : now)); // another question may be open by now
      if (control === "delete" && router.state.location.pathname === from) await navigate({ to: "/sweeps" });
      else if (result && (control === "clone" || control === "rerun")) await show(result);
      if (control === "delete") {
        queries.removeQueries({ queryKey: ["sweep", sweep.id] });
        queries.removeQueries({ queryKey: ["overview", sweep.id] });
      } else await queries.invalidateQueries({ queryKey: ["sweep"] });
      await queries.invalidateQueries({ queryKey: ["sweeps"] }); // live updates may be paused
    },
  });

  const open = (control: Control) => {
    if (!action.isPending) action.reset();
    setParallel(sweep.max_parallel);
    setAsk({ control, key: newKey() });
  };
  const now = (control: Control) => action.mutate({ control, key: newKey() });
  const busy = (control: Control) => action.isPending && action.variables.control === control;

  if (!canSteer) return <ReadOnly action="steer this sweep" />;

  return (
    <div>
      <Group gap={8}>
        {can.includes("pause") && (
          <Button size="xs" variant="default" loading={busy("pause")} onClick={() => now("pause")}>
            Pause
          </Button>
        )}
        {can.includes("resume") && (
          <Button size="xs" loading={busy("resume")} onClick={() => now("resume")}>
            Resume
          </Button>
        )}
        {can.includes("cancel") && (
          <Button size="xs" variant="default" onClick={() => open("cancel")}>
            Cancel…
          </Button>
        )}
        {can.includes("rerun") && (
          <Button size="xs" variant="default" onClick={() => open("rerun")}>
            Rerun failed…
          </Button>
        )}
        <Menu position="bottom-end">
          <Menu.Target>
            <Button size="xs" variant="default">
              More
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {can.includes("parallel") && <Menu.Item onClick={() => open("parallel")}>Trials at once…</Menu.Item>}
            {can.includes("stop") && <Menu.Item onClick={() => open("stop")}>Stop after running trials…</Menu.Item>}
            <Menu.Item onClick={() => open("clone")}>Clone…</Menu.Item>
            <Menu.Item onClick={() => void navigate({ to: "/sweeps/new", search: { from: sweep.id } })}>
              Edit as a new sweep
            </Menu.Item>
            {can.includes("delete") && (
              <Menu.Item color="red" onClick={() => open("delete")}>
                Delete…
              </Menu.Item>
            )}
          </Menu.Dropdown>
        </Menu>
      </Group>
      {action.isError && action.variables !== ask && (
        <div style={{ marginTop: 8, maxWidth: 420 }}>
          <ErrorNote error={action.error} doing={words[action.variables.control].action} />
        </div>
      )}
      {ask !== null && (
        <Confirm
          opened
          title={`${words[ask.control].title} ${sweep.name} (${shortId(sweep.id)})${ask.control === "parallel" ? "" : "?"}`}
          action={words[ask.control].action}
          danger={ask.control === "cancel" || ask.control === "delete"}
          busy={action.isPending && action.variables === ask}
          disabled={ask.control === "parallel" && parallel === ""}
          error={action.variables === ask ? action.error : null}
          onConfirm={() => action.mutate(ask)}
          onClose={() => setAsk(null)}
        >
          {ask.control === "parallel" ? (
            <NumberInput
              label="Trials at once"
              description="0 = as many as fit. Trials that run go on."
              min={0}
              max={100_000}
              allowDecimal={false}
              value={parallel}
              onChange={setParallel}
              data-autofocus
            />
          ) : (
            <p>{question(ask.control, sweep)}</p>
          )}
        </Confirm>
      )}
    </div>
  );
}

const words: Record<Control, { title: string; action: string }> = {
  pause: { title: "Pause", action: "Pause" },
  resume: { title: "Resume", action: "Resume" },
  stop: { title: "Stop", action: "Stop" },
  cancel: { title: "Cancel", action: "Cancel sweep" },
  parallel: { title: "Trials at once of", action: "Set" },
  clone: { title: "Clone", action: "Clone" },
  rerun: { title: "Rerun failed trials of", action: "Rerun" },
  delete: { title: "Delete", action: "Delete" },
};

function question(control: Control, sweep: Sweep): string {
  const { counts } = sweep;
  switch (control) {
    case "stop":
      return `${count(counts.running, "running trial")} will finish. No other trial starts.`;
    case "cancel":
      return `${count(counts.running, "running trial")} will be stopped now. Results so far are kept.`;
    case "clone":
      return "This starts a new sweep with the same file. Its image is looked up again.";
    case "rerun":
      return `This starts a new sweep with the values of ${count(counts.failed + counts.infeasible + counts.canceled, "trial")} that failed, needed too much memory, or were canceled.`;
    case "delete":
      return `“${sweep.name}” goes with its ${count(counts.total, "trial")}, results, logs and files. This cannot be undone.`;
    default:
      return "";
  }
}
