import { Button, Checkbox, Group } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { Note } from "@/components/Note";
import { small } from "@/lib/format";
import { messageOf } from "@/api/errors";
import type { Log } from "@/services/useLog";

const words: Record<Log["state"], string> = {
  reading: "reading…",
  following: "following as it is written",
  retrying: "trying again",
  paused: "paused with the page; resume live updates to follow it",
  idle: "more follows",
  complete: "complete",
  failed: "incomplete",
};

/** In these states nothing shown does not mean that nothing was written. */
const unknown = new Set<Log["state"]>(["reading", "retrying", "failed"]);

/** An attempt's output: the program's name, the shown part, and the rest on demand. */
export function LogView({
  pieces,
  start,
  shown,
  more,
  state,
  problem,
  readMore,
  toEnd,
  toStart,
  onDownload,
}: Log & { onDownload: () => Promise<void> }) {
  const box = useRef<HTMLPreElement>(null);
  const [stick, setStick] = useState(true);
  const [failed, setFailed] = useState("");
  const asked = useRef(false); // by a button, which may vanish with the answer

  useEffect(() => {
    if (stick && state === "following" && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [pieces, stick, state]);

  useEffect(() => {
    if (start > 0 && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [start]);

  // A button that vanishes would lose the focus: it moves to the new content.
  useEffect(() => {
    if (!asked.current || state === "reading") return;
    asked.current = false;
    if (document.activeElement === document.body) box.current?.focus({ preventScroll: true });
  }, [state, problem, more, start]);

  const asking = (ask: () => void) => () => {
    asked.current = true;
    ask();
  };

  const onScroll = () => {
    const { current } = box;
    if (current && more && state === "idle" && current.scrollTop + current.clientHeight > current.scrollHeight - 200)
      readMore();
  };

  return (
    <>
      <Group gap="md" mb={6}>
        <span className="num" style={{ fontSize: 13 }} role="status">
          {small(shown - start)} shown{start > 0 && `, from ${small(start)} on`}, {words[state]}
        </span>
        {state === "following" && (
          <Checkbox
            size="xs"
            label="Keep the end in view"
            checked={stick}
            onChange={(event) => setStick(event.currentTarget.checked)}
          />
        )}
        {more && (
          <Button size="xs" variant="default" onClick={asking(readMore)}>
            Show the next MiB
          </Button>
        )}
        {more && (
          <Button size="xs" variant="default" onClick={asking(toEnd)}>
            Go to the end
          </Button>
        )}
        {start > 0 && (
          <Button size="xs" variant="default" onClick={asking(toStart)}>
            Show the beginning
          </Button>
        )}
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            setFailed("");
            onDownload().catch((error: unknown) => setFailed(messageOf(error)));
          }}
        >
          Download all
        </Button>
      </Group>
      {failed !== "" && <Note kind="bad">Downloading the log failed. {failed}</Note>}
      {problem !== "" && (
        <Note kind="bad">
          {problem}{" "}
          <Button size="xs" variant="default" onClick={asking(readMore)}>
            Try again
          </Button>
        </Note>
      )}
      {pieces.length === 0 && !unknown.has(state) && (
        <div className="card">
          {state === "following" || state === "paused" ? "It has written nothing yet." : "It wrote nothing."}
        </div>
      )}
      {pieces.length > 0 && (
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard
        <pre ref={box} className="log" tabIndex={0} aria-label="Output of the attempt" onScroll={onScroll}>
          {pieces.map((piece) => (
            <span key={piece.offset} className={piece.stream}>
              {piece.text}
            </span>
          ))}
        </pre>
      )}
    </>
  );
}
