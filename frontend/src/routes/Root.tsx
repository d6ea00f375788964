import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Outlet, useRouteContext } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { onSessionEnd } from "@/api/session";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { ApiError } from "@/api/errors";
import { LogIn } from "@/components/LogIn";
import { Shell } from "@/routes/Shell";
import { endSession, meQuery, startSession } from "@/services/session";

/**
 * Root shows the log-in page in place of any other while the API does not know
 * the caller. The address stays, so that the page is there again after it.
 */
export function Root() {
  const queries = useQueryClient();
  const { live } = useRouteContext({ from: "__root__" });
  const me = useQuery(meQuery);
  const [ended, setEnded] = useState(false);
  const [left, setLeft] = useState(false); // by a log-out, which needs no explanation
  const known = me.data !== undefined && !ended;

  // What one person read, another must not see.
  const forgetAll = () => queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" });

  useEffect(() => onSessionEnd(() => setEnded(true)), []);
  useEffect(() => (known ? live.start() : undefined), [known, live]);

  if (ended || (me.error instanceof ApiError && me.error.status === 401)) {
    return (
      <LogIn
        wasKnown={me.data !== undefined && !left}
        onLogIn={async (token) => {
          const who = await startSession(token);
          forgetAll();
          queries.setQueryData(meQuery.queryKey, who);
          setLeft(false);
          setEnded(false);
        }}
      />
    );
  }

  if (me.isError) {
    return (
      <main className="page">
        <ErrorNote error={me.error} doing="Reaching the server" onRetry={() => void me.refetch()} />
      </main>
    );
  }

  if (!known) {
    return (
      <main className="page">
        <Loading what="who you are" />
      </main>
    );
  }

  return (
    <Shell
      me={me.data}
      onLogOut={async () => {
        await endSession();
        setLeft(true);
        setEnded(true);
        forgetAll();
      }}
    >
      <Outlet />
    </Shell>
  );
}
