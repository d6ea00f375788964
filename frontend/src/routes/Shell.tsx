import { Menu, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useRouteContext } from "@tanstack/react-router";
import { useSyncExternalStore, type ReactNode } from "react";
import { troubles } from "@/components/Findings";
import { Icon, type IconName } from "@/components/Icon";
import { LiveBadge } from "@/components/LiveBadge";
import { healthQuery } from "@/services/health";
import type { Me } from "@/services/session";

const pages: { to: "/sweeps" | "/machines" | "/probes" | "/health" | "/settings"; text: string; icon: IconName }[] = [
  { to: "/sweeps", text: "Sweeps", icon: "sweeps" },
  { to: "/machines", text: "Machines", icon: "machines" },
  { to: "/probes", text: "Probes", icon: "probes" },
  { to: "/health", text: "Health", icon: "check" },
  { to: "/settings", text: "Settings", icon: "settings" },
];

/** The frame around every page: the present page, whether it is live, and the user. */
export function Shell({ me, onLogOut, children }: { me: Me; onLogOut: () => Promise<void>; children: ReactNode }) {
  const { live } = useRouteContext({ from: "__root__" });
  const state = useSyncExternalStore(live.subscribe, live.current);
  const health = useQuery(healthQuery(state !== "paused"));
  const trouble = troubles(health.data?.findings ?? []);

  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <Link to="/sweeps" className="brand">
          <Mark />
          Berth
        </Link>
        <nav className="nav" aria-label="Pages">
          {pages.map((page) => (
            <Link
              key={page.to}
              to={page.to}
              activeProps={{ "aria-current": "page" }}
              activeOptions={{ includeSearch: false }}
            >
              <Icon name={page.icon} />
              {page.text}
            </Link>
          ))}
        </nav>
        <div style={{ flex: 1 }} />
        {trouble !== "" && (
          <Link to="/health" className="trouble">
            <Icon
              name={health.data?.ok === false ? "cross" : "warning"}
              color={health.data?.ok === false ? "var(--bad)" : "var(--warn)"}
            />
            {trouble}
          </Link>
        )}
        <LiveBadge state={state} onToggle={() => live.setPaused(state !== "paused")} />
        {me.known_by === "session" && (
          <Menu position="bottom-end">
            <Menu.Target>
              <UnstyledButton ml={12} fz={14} aria-label={`Account of ${me.name}`}>
                {me.name}
              </UnstyledButton>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Label>Role: {me.role}</Menu.Label>
              <Menu.Item onClick={() => void onLogOut()}>Log out</Menu.Item>
            </Menu.Dropdown>
          </Menu>
        )}
      </header>
      <main id="content" className="page" tabIndex={-1} style={{ outline: "none" }}>
        {children}
      </main>
    </>
  );
}

function Mark() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b6a78" />
      <path d="M6 21h20l-3 5H9z" fill="#fff" />
      <rect x="8" y="14" width="7" height="6" rx="1" fill="#fff" />
      <rect x="17" y="14" width="7" height="6" rx="1" fill="#fff" opacity=".75" />
      <rect x="8" y="7" width="7" height="6" rx="1" fill="#fff" opacity=".5" />
    </svg>
  );
}
