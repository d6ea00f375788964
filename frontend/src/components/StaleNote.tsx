import { ErrorNote } from "@/components/ErrorNote";

interface Props {
  query: { isError: boolean; error: unknown; refetch: () => Promise<unknown> };
  doing: string;
}

/** Says above a page that it could not be read again; nothing while it could. */
export function StaleNote({ query, doing }: Props) {
  if (!query.isError) return null;

  return (
    <div style={{ marginBottom: 12 }}>
      <ErrorNote error={query.error} doing={doing} onRetry={() => void query.refetch()} />
    </div>
  );
}
