import { queryOptions } from "@tanstack/react-query";
import { answer } from "@/api/client";
import { deleteSecret, listSecrets, putSecret } from "@/api/generated";

export type { Secret } from "@/api/generated";

/** No event tells of secrets, so that a page that is opened reads them. */
export const secretsQuery = queryOptions({
  queryKey: ["secrets"],
  queryFn: ({ signal }) => answer(listSecrets({ signal })),
  staleTime: 0,
});

export function store(name: string, value: string) {
  return answer(putSecret({ path: { name }, body: { value } }));
}

export function remove(name: string) {
  return answer(deleteSecret({ path: { name } }));
}
