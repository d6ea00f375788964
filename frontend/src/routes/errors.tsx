import { Button, Title } from "@mantine/core";
import { Link, useRouter } from "@tanstack/react-router";
import { messageOf } from "@/api/errors";

/** A page that is not there. */
export function NotFoundPage() {
  return (
    <div className="card">
      <Title order={1}>There is no such page</Title>
      <p>The address may be cut off, or what it named was deleted.</p>
      <Link to="/sweeps">All sweeps</Link>
    </div>
  );
}

/** A page that failed: what it said, and two ways on. */
export function ErrorPage({ error, reset }: { error: unknown; reset: () => void }) {
  const router = useRouter();

  return (
    <div className="card" role="alert">
      <Title order={1}>This page failed</Title>
      <p className="break">{messageOf(error)}</p>
      <p>If Berth was updated a moment ago, reload the page.</p>
      <div style={{ display: "flex", gap: 12, alignItems: "center" }}>
        <Button
          onClick={() => {
            reset();
            void router.invalidate();
          }}
        >
          Try again
        </Button>
        <Button variant="default" onClick={() => window.location.reload()}>
          Reload
        </Button>
        <Link to="/sweeps">All sweeps</Link>
      </div>
    </div>
  );
}

/** A thing that the API does not know. */
export function MissingThing({ what }: { what: string }) {
  return (
    <div className="card">
      <Title order={1}>There is no such {what}</Title>
      <p>It may have been deleted, or the address is cut off.</p>
      <Link to="/sweeps">All sweeps</Link>
    </div>
  );
}
