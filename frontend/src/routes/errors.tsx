import { Button } from "@mantine/core";
import { Link, useRouter } from "@tanstack/react-router";
import { PageTitle } from "@/components/PageTitle";
import { messageOf } from "@/api/errors";

/** A page that is not there. */
export function NotFoundPage() {
  return (
    <div className="card">
      <PageTitle text="There is no such page" />
      <p>The address may be cut off, or what it named was deleted.</p>
      <Link to="/sweeps">All sweeps</Link>
    </div>
  );
}

/** A page that failed: its error, and two ways on. */
export function ErrorPage({ error, reset }: { error: unknown; reset: () => void }) {
  const router = useRouter();

  return (
    <div className="card" role="alert">
      <PageTitle text="This page failed" />
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
      <PageTitle text={`There is no such ${what}`} />
      <p>It may have been deleted, or the address is cut off.</p>
      <Link to="/sweeps">All sweeps</Link>
    </div>
  );
}
