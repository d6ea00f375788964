import { Icon, type IconName } from "@/components/Icon";
import type { StreamState } from "@/services/stream";

const looks: Record<StreamState, { text: string; icon: IconName; color: string; hint: string }> = {
  connecting: {
    text: "Connecting",
    icon: "clock",
    color: "var(--wait)",
    hint: "Changes are shown once the stream is open",
  },
  live: { text: "Live", icon: "play", color: "var(--done)", hint: "Pages change as things change" },
  reconnecting: {
    text: "Reconnecting",
    icon: "warning",
    color: "var(--warn)",
    hint: "Pages may be out of date until the server answers",
  },
  paused: { text: "Paused", icon: "pause", color: "var(--warn)", hint: "Pages stay as they are" },
};

/** Whether pages follow changes; a press pauses or resumes that. */
export function LiveBadge({ state, onToggle }: { state: StreamState; onToggle: () => void }) {
  const look = looks[state];
  const action = state === "paused" ? "resume live updates" : "pause live updates";

  return (
    <button
      type="button"
      className="sort state"
      style={{ fontSize: 13 }}
      onClick={onToggle}
      title={`${look.hint}; press to ${action}`}
    >
      <Icon name={look.icon} color={look.color} size={12} />
      <span role="status">{look.text}</span>
      <span className="skip">, {action}</span>
    </button>
  );
}
