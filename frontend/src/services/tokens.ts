import { queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { createToken, listTokens, revokeToken, type NewToken } from "@/api/generated";

export type { CreatedToken, NewToken, Token, TokenRole } from "@/api/generated";

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ signal }) => answer(listTokens({ signal })),
});

export function create(token: NewToken) {
  return answer(createToken({ body: token }));
}

export function revoke(id: string) {
  return answer(revokeToken({ path: { id } }));
}
