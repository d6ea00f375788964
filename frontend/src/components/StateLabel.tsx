import { Icon } from "@/components/Icon";
import type { StateLook } from "@/lib/states";

/** A state by shape, colour and word. */
export function StateLabel({ look }: { look: StateLook }) {
  return (
    <span className="state">
      <Icon name={look.icon} color={look.color} />
      {look.text}
    </span>
  );
}
