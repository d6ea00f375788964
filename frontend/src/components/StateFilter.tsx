import { Chip, Group } from "@mantine/core";
import type { StateLook } from "@/lib/states";

interface Props<State extends string> {
  looks: Record<State, StateLook>;
  chosen: State[];
  onChange: (states: State[]) => void;
}

/** Which states a list shows; none chosen = all. */
export function StateFilter<State extends string>({ looks, chosen, onChange }: Props<State>) {
  const states = Object.keys(looks) as State[];

  return (
    <Chip.Group multiple value={chosen} onChange={(values) => onChange(values)}>
      <Group gap={6} className="filters" role="group" aria-label="Show only these states">
        {states.map((state) => (
          <Chip key={state} value={state} size="xs" variant="outline">
            {looks[state].text}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}
