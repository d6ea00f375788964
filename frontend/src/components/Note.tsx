import type { ReactNode } from "react";
import { Icon, type IconName } from "@/components/Icon";

const looks: Record<string, { icon: IconName; color: string; role: "alert" | "status" }> = {
  bad: { icon: "cross", color: "var(--bad)", role: "alert" },
  warn: { icon: "warning", color: "var(--warn)", role: "status" },
  good: { icon: "check", color: "var(--done)", role: "status" },
  plain: { icon: "clock", color: "var(--wait)", role: "status" },
};

/** A message with a reason, and, as children, the way on. */
export function Note({ kind, children }: { kind: "bad" | "warn" | "good" | "plain"; children: ReactNode }) {
  const look = looks[kind] ?? { icon: "clock" as const, color: "var(--wait)", role: "status" as const };

  return (
    <div className={`note ${kind}`} role={look.role}>
      <span style={{ paddingTop: 3 }}>
        <Icon name={look.icon} color={look.color} />
      </span>
      <div style={{ minWidth: 0, flex: 1 }} className="break">
        {children}
      </div>
    </div>
  );
}
