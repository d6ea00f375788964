import { Button, Group } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { messageOf } from "@/api/errors";
import { Confirm } from "@/components/Confirm";
import { Note } from "@/components/Note";
import { apart } from "@/lib/compare";
import { controlsOf } from "@/lib/controls";
import { count } from "@/lib/format";
import { useCanSteer } from "@/services/session";
import * as api from "@/services/sweeps";
import type { Sweep } from "@/services/sweeps";

const actions = ["pause", "resume", "cancel"] as const;
type Action = (typeof actions)[number];

const words: Record<Action, { button: string; done: string }> = {
  pause: { button: "Pause", done: "paused" },
  resume: { button: "Resume", done: "resumed" },
  cancel: { button: "Cancel…", done: "canceling" },
};

/** The commands for several sweeps at once. It shows the result of each one. */
export function BulkActions({ sweeps, onNone }: { sweeps: Sweep[]; onNone: () => void }) {
  const canSteer = useCanSteer();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [asks, setAsks] = useState(false);
  const act = useMutation({
    mutationFn: async (action: Action) => {
      const results: { name: string; bad: boolean; text: string }[] = [];
      const names = apart(sweeps);
      for (const [i, sweep] of sweeps.entries()) {
        const name = names[i] ?? sweep.name;
        if (!controlsOf(sweep).includes(action)) {
          results.push({ name, bad: false, text: `left as it is: it is ${sweep.state}` });
          continue;
        }
        try {
          await api[action](sweep.id);
          results.push({ name, bad: false, text: words[action].done });
        } catch (error) {
          results.push({ name, bad: true, text: messageOf(error) });
        }
      }

      return results;
    },
    onSettled: (_, __, action) => {
      if (action === "cancel") setAsks(false);
      void queries.invalidateQueries({ queryKey: ["sweeps"] });
      void queries.invalidateQueries({ queryKey: ["sweep"] }); // live updates may be paused
    },
  });

  if (sweeps.length === 0 && !act.data) return null;

  return (
    <div className="bulk">
      <Group gap="xs" role="group" aria-label="With the chosen sweeps">
        <strong>{count(sweeps.length, "sweep")} chosen</strong>
        <Button
          size="xs"
          disabled={sweeps.length < 2 || sweeps.length > 10}
          onClick={() => void navigate({ to: "/compare", search: { ids: sweeps.map((sweep) => sweep.id) } })}
        >
          Compare
        </Button>
        {(canSteer ? actions : []).map((action) => (
          <Button
            key={action}
            size="xs"
            variant="default"
            disabled={sweeps.length === 0 || act.isPending}
            loading={act.isPending && act.variables === action}
            onClick={() => (action === "cancel" ? setAsks(true) : act.mutate(action))}
          >
            {words[action].button}
          </Button>
        ))}
        <Button
          size="xs"
          variant="subtle"
          onClick={() => {
            act.reset();
            onNone();
          }}
        >
          Choose none
        </Button>
        {(sweeps.length < 2 || sweeps.length > 10) && <span>Compare takes two to ten sweeps.</span>}
      </Group>
      {act.data && (
        <div style={{ marginTop: 8 }}>
          <Note kind={act.data.some((one) => one.bad) ? "bad" : "good"}>
            <ul className="plain">
              {act.data.map((one, i) => (
                <li key={i}>
                  {one.name}: {one.text}
                </li>
              ))}
            </ul>
          </Note>
        </div>
      )}
      {asks && (
        <Confirm
          opened
          title={`Cancel ${count(sweeps.length, "sweep")}?`}
          action="Cancel sweeps"
          danger
          busy={act.isPending}
          error={act.error}
          onConfirm={() => act.mutate("cancel")}
          onClose={() => setAsks(false)}
        >
          <p className="break">{apart(sweeps).join(", ")}</p>
          <p>Their running trials will be stopped now. Results so far are kept.</p>
        </Confirm>
      )}
    </div>
  );
}
