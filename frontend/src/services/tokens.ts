import { queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { createToken, listTokens, revokeToken, type NewToken } from "@/api/generated";
import { again, EACH_MINUTE } from "@/services/query";

export type { CreatedToken, NewToken, Token, TokenRole } from "@/api/generated";

/** No event tells of tokens: another admin may make and revoke them, and they end by themselves. */
export function tokensQuery(live: boolean) {
  return queryOptions({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => answer(listTokens({ signal })),
    staleTime: 0,
    refetchInterval: (query) => again(query) || (live && EACH_MINUTE),
  });
}

export function create(token: NewToken) {
  return answer(createToken({ body: token }));
}

export function revoke(id: string) {
  return answer(revokeToken({ path: { id } }));
}
