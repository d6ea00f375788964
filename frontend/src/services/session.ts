import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { getMe, getServer, logIn, logOut, type Me } from "@/api/generated";
import { draftsOf } from "@/lib/draft";

export type { Me, ServerInfo } from "@/api/generated";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => whoAmI(signal),
});

/** whoAmI asks the API itself: a query would show that it asks. */
export async function whoAmI(signal: AbortSignal): Promise<Me> {
  return own(await answer(getMe({ signal })));
}

/** own lets only the user of this session find drafts in this tab. Without sessions all users count as one. */
function own(me: Me): Me {
  if (me.known_by === "session") draftsOf(me.name);

  return me;
}

/** useCanSteer says that the caller may do more than read; the server decides again. */
export function useCanSteer(): boolean {
  return useQuery(meQuery).data?.role !== "viewer";
}

/** useIsAdmin says whether the caller is an admin; the server decides again. */
export function useIsAdmin(): boolean {
  return useQuery(meQuery).data?.role === "admin";
}

export const serverQuery = queryOptions({
  queryKey: ["server"],
  queryFn: ({ signal }) => answer(getServer({ signal })),
});

export async function startSession(token: string) {
  return own(await answer(logIn({ body: { token } })));
}

export function endSession() {
  return answer(logOut());
}
