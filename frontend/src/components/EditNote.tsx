import { Button, Textarea } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Confirm } from "@/components/Confirm";
import { PageLink } from "@/components/links";
import { useCanSteer } from "@/services/session";

const LONGEST = 1000; // characters, as the API takes them

interface Props {
  note: string;
  /** save takes the new note, and the one that the person saw. */
  save: (note: string, was: string) => Promise<unknown>;
}

/** What people noted of a sweep or a trial, and a way to change it. */
export function EditNote({ note, save }: Props) {
  const [draft, setDraft] = useState<string>(); // absent = it is not being changed
  const [seen, setSeen] = useState("");
  const queries = useQueryClient();
  const saving = useMutation({
    mutationFn: (text: string) => save(text, seen),
    onSuccess: async () => {
      setDraft(undefined);
      await queries.invalidateQueries({ queryKey: ["sweep"] });
      await queries.invalidateQueries({ queryKey: ["sweeps"] }); // live updates may be paused
      await queries.invalidateQueries({ queryKey: ["overview"] }); // charts and comparisons show notes
    },
  });
  const open = () => {
    saving.reset();
    setDraft(note);
    setSeen(note);
  };

  return (
    <>
      <NoteText note={note} />{" "}
      {useCanSteer() && (
        <Button size="compact-xs" variant="default" onClick={open}>
          {note === "" ? "Add a note…" : "Change…"}
        </Button>
      )}
      <Confirm
        opened={draft !== undefined}
        title="Note"
        action="Save"
        keeps
        busy={saving.isPending}
        error={saving.error}
        onConfirm={() => saving.mutate((draft ?? "").trim())}
        onClose={() => setDraft(undefined)}
      >
        <Textarea
          label="Note for people"
          description="Words such as #baseline are tags: the list of sweeps finds them by name."
          maxLength={LONGEST}
          autosize
          minRows={3}
          value={draft ?? ""}
          onChange={(event) => setDraft(event.currentTarget.value)}
        />
      </Confirm>
    </>
  );
}

/** A note, whose tags lead to the sweeps that have them, too. */
function NoteText({ note }: { note: string }) {
  return (
    <span className="break">
      {note.split(/(#[\p{L}\p{N}_-]+)/u).map((part, i) =>
        i % 2 === 0 ? (
          part
        ) : (
          <PageLink key={i} to="/sweeps" search={{ name: part }}>
            {part}
          </PageLink>
        ),
      )}
    </span>
  );
}
