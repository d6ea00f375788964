import { NativeSelect } from "@mantine/core";
import { moment } from "@/lib/format";
import type { Sweep } from "@/services/sweeps";

/** Which earlier sweep a new one begins with. */
export function SweepPicker({ sweeps, onPick }: { sweeps: Sweep[]; onPick: (id: string) => void }) {
  if (sweeps.length === 0) return null;

  return (
    <NativeSelect
      size="xs"
      aria-label="Begin with an earlier sweep"
      value=""
      style={{ maxWidth: 220 }}
      data={[
        { value: "", label: "Begin with an earlier sweep" },
        ...sweeps.map((sweep) => ({ value: sweep.id, label: `${sweep.name}, ${moment(sweep.created_at)}` })),
      ]}
      onChange={(event) => {
        if (event.currentTarget.value !== "") onPick(event.currentTarget.value);
      }}
    />
  );
}
