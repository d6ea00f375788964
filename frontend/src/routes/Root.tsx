import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Outlet, useRouteContext } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { onSessionEnd } from "@/api/session";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { ApiError } from "@/api/errors";
import { LogIn } from "@/components/LogIn";
import { forgetDrafts } from "@/lib/draft";
import { forgetKey } from "@/lib/keys";
import { StaleNote } from "@/components/StaleNote";
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
  const [stuck, setStuck] = useState<unknown>(null); // why a log-out failed
  const name = useRef(me.data?.name);
  const known = me.data !== undefined && !ended;

  // What one person read, another must not see.
  const forgetAll = () => queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" });

  useEffect(() => {
    const before = name.current;
    name.current = me.data?.name;
    if (before === undefined || before === me.data?.name) return;
    void queries.resetQueries({ predicate: (query) => query.queryKey[0] !== "me" }); // another tab logged in
  }, [me.data?.name, queries]);
  useEffect(() => onSessionEnd(() => setEnded(true)), []);
  useEffect(() => (known ? live.start() : undefined), [known, live]);

  if (ended || (me.data === undefined && me.error instanceof ApiError && me.error.status === 401)) {
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

  if (me.isError && me.data === undefined) {
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
        setStuck(null);
        try {
          await endSession();
        } catch (error) {
          setStuck(error);

          return;
        }
        forgetDrafts();
        forgetKey();
        setLeft(true);
        setEnded(true);
        forgetAll();
      }}
    >
      {stuck !== null && <ErrorNote error={stuck} doing="Logging out" />}
      <StaleNote query={me} doing="Reaching the server" />
      <Outlet />
    </Shell>
  );
}
