import { Button } from "@mantine/core";
import { ApiError, messageOf } from "@/api/errors";
import { Note } from "@/components/Note";

/** Why something could not be read or done, with each thing that is wrong, and a way to try again. */
export function ErrorNote({ error, doing, onRetry }: { error: unknown; doing: string; onRetry?: () => void }) {
  const items = error instanceof ApiError ? error.items : [];
  const requestId = error instanceof ApiError ? error.requestId : "";

  return (
    <Note kind="bad">
      <strong>{doing} failed.</strong> {messageOf(error)}
      {items.length > 0 && (
        <ul style={{ margin: "6px 0 0", paddingLeft: 18 }}>
          {items.map((item) => (
            <li key={item.pointer + item.code}>
              <span className="mono">{item.pointer}</span> {item.detail}
            </li>
          ))}
        </ul>
      )}
      {requestId !== "" && (
        <div style={{ color: "var(--mantine-color-dimmed)", fontSize: 13 }}>
          Request <span className="mono">{requestId}</span>, also in the server's log.
        </div>
      )}
      {onRetry && (
        <div style={{ marginTop: 8 }}>
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </Note>
  );
}
