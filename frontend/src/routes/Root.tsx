import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Outlet, useRouteContext } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { onSessionEnd } from "@/api/session";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { ApiError } from "@/api/errors";
import { LogIn } from "@/components/LogIn";
import { forgetDrafts } from "@/lib/draft";
import { forgetKey } from "@/lib/keys";
import { StaleNote } from "@/components/StaleNote";
import { Shell } from "@/routes/Shell";
import { endSession, meQuery, startSession, whoAmI, type Me } from "@/services/session";

/**
 * Root shows the log-in page in place of any other while the API does not know
 * the caller. The address stays, so that the page comes back after it.
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
  const asksToken = ended || (me.data === undefined && me.error instanceof ApiError && me.error.status === 401);

  // One user's data must not be shown to another.
  const forgetAll = () => queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" });

  const enter = (who: Me) => {
    forgetAll();
    name.current = who.name;
    queries.setQueryData(meQuery.queryKey, who);
    setStuck(null);
    setLeft(false);
    setEnded(false);
  };
  const entered = useEffectEvent(enter);

  useEffect(() => {
    const before = name.current;
    name.current = me.data?.name;
    if (before === undefined || before === me.data?.name) return;
    void queries.resetQueries({ predicate: (query) => query.queryKey[0] !== "me" }); // another tab logged in
    setStuck(null);
  }, [me.data?.name, queries]);
  useEffect(() => onSessionEnd(() => setEnded(true)), []);
  useEffect(() => (known ? live.start() : undefined), [known, live]);
  useEffect(
    () => (asksToken && !left ? whenSeen(async (signal) => entered(await whoAmI(signal))) : undefined),
    [asksToken, left],
  );

  if (asksToken) {
    return (
      <LogIn wasKnown={me.data !== undefined && !left} onLogIn={async (token) => enter(await startSession(token))} />
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

/** whenSeen looks whether another tab logged in, each time that a person comes back to this one; the result ends it. */
function whenSeen(look: (signal: AbortSignal) => Promise<void>): () => void {
  const over = new AbortController();
  const { signal } = over;
  let looks = false;

  const seen = () => {
    if (document.hidden || looks) return;
    looks = true;
    look(signal)
      .catch(() => undefined) // no user is known yet: the page that asks for a token stays
      .finally(() => (looks = false));
  };
  window.addEventListener("focus", seen, { signal });
  document.addEventListener("visibilitychange", seen, { signal });

  return () => over.abort();
}
