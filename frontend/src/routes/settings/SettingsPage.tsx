import { Anchor, SegmentedControl, Switch, Title, useMantineColorScheme } from "@mantine/core";
import { readConfig } from "@/api/config";
import { PageLink } from "@/components/links";
import { useQuery } from "@tanstack/react-query";
import { useRouteContext } from "@tanstack/react-router";
import { useSyncExternalStore } from "react";
import { PageTitle } from "@/components/PageTitle";
import { Facts } from "@/components/Facts";
import { When } from "@/components/When";
import { bytes, duration } from "@/lib/format";
import { SecretsSection } from "@/routes/settings/SecretsSection";
import { TokensSection } from "@/routes/settings/TokensSection";
import { meQuery, serverQuery, type ServerInfo } from "@/services/session";

export function SettingsPage() {
  const { live } = useRouteContext({ from: "__root__" });
  const state = useSyncExternalStore(live.subscribe, live.current);
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const me = useQuery(meQuery);
  const server = useQuery(serverQuery);

  return (
    <>
      <PageTitle text="Settings" />
      <div style={{ display: "grid", gap: 16 }}>
        <section className="card" aria-label="This browser">
          <Title order={2} mb="xs">
            This browser
          </Title>
          <div style={{ display: "grid", gap: 12, justifyItems: "start" }}>
            <div>
              <div id="theme-label" style={{ fontSize: 14, marginBottom: 4 }}>
                Theme
              </div>
              <SegmentedControl
                aria-labelledby="theme-label"
                value={colorScheme}
                onChange={(value) => setColorScheme(value)}
                data={[
                  { value: "auto", label: "As the system" },
                  { value: "light", label: "Light" },
                  { value: "dark", label: "Dark" },
                ]}
              />
            </div>
            <Switch
              label="Live updates"
              description="Pages change as things change"
              checked={state !== "paused"}
              onChange={(event) => live.setPaused(!event.currentTarget.checked)}
            />
          </div>
        </section>
        {me.data && (
          <section className="card" aria-label="You">
            <Title order={2} mb="xs">
              You
            </Title>
            <Facts
              facts={[
                { name: "Name", value: me.data.name },
                { name: "Role", value: me.data.role },
                {
                  name: "Signed in by",
                  value: me.data.known_by === "local" ? "this machine, which needs no token" : me.data.known_by,
                },
                ...(me.data.expires_at === undefined
                  ? []
                  : [{ name: "Session ends", value: <When at={me.data.expires_at} /> }]),
              ]}
            />
          </section>
        )}
        {me.data?.role === "admin" && <TokensSection firstWouldLockOut={me.data.known_by === "local"} />}
        {me.data?.role === "admin" && <SecretsSection />}
        {server.data && (
          <section className="card" aria-label="Server">
            <Title order={2} mb="xs">
              Server
            </Title>
            <Facts facts={serverFacts(server.data)} />
          </section>
        )}
      </div>
    </>
  );
}

function serverFacts(server: ServerInfo) {
  const kept = (seconds: number | undefined) =>
    seconds === undefined || seconds === 0 ? "without limit" : duration(seconds);

  return [
    { name: "Version", value: server.version },
    { name: "Largest sweep file", value: bytes(server.limits.sweep_file_bytes) },
    { name: "Sweeps are kept", value: kept(server.retention.sweeps_seconds) },
    { name: "Files are kept", value: kept(server.retention.outputs_seconds) },
    { name: "Temporal namespace", value: server.temporal.namespace },
    { name: "API", value: <Anchor href={`${readConfig().base}api/docs`}>Description of the API</Anchor> },
    { name: "Health", value: <PageLink to="/health">Each part, and what to do</PageLink> },
  ];
}
