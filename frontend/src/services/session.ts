import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { getMe, getServer, logIn, logOut } from "@/api/generated";

export type { Me, ServerInfo } from "@/api/generated";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => answer(getMe({ signal })),
});

/** useCanSteer says that the caller may do more than read; the server decides again. */
export function useCanSteer(): boolean {
  return useQuery(meQuery).data?.role !== "viewer";
}

export const serverQuery = queryOptions({
  queryKey: ["server"],
  queryFn: ({ signal }) => answer(getServer({ signal })),
});

export function startSession(token: string) {
  return answer(logIn({ body: { token } }));
}

export function endSession() {
  return answer(logOut());
}
