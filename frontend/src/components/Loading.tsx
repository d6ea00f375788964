import { Loader } from "@mantine/core";

/** Something is being read; the words say what. */
export function Loading({ what }: { what: string }) {
  return (
    <div role="status" style={{ display: "flex", gap: 10, alignItems: "center", padding: "16px 4px" }}>
      <Loader size="xs" aria-hidden="true" />
      <span>Reading {what}…</span>
    </div>
  );
}
