import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "@/api/errors";
import { logPage, logStream, type LogPiece } from "@/services/log";

export interface Log {
  pieces: LogPiece[];
  /** shown is how many bytes are shown, from the first on. */
  shown: number;
  /** more says that the server has more than is shown. */
  more: boolean;
  state: "reading" | "following" | "idle" | "complete" | "failed";
  problem: string;
  removed: string;
  readMore: () => void;
}

/** useLog reads a log page by page from its beginning; one that is still written is followed from its end. */
export function useLog(attemptId: string): Log {
  const [pieces, setPieces] = useState<LogPiece[]>([]);
  const [shown, setShown] = useState(0);
  const [state, setState] = useState<Log["state"]>("reading");
  const [more, setMore] = useState(false);
  const [problem, setProblem] = useState("");
  const [removed, setRemoved] = useState("");
  const source = useRef<EventSource | null>(null);
  const gone = useRef(false);

  const follow = useCallback(
    (from: number) => {
      source.current?.close();
      const stream = new EventSource(logStream(attemptId, from));
      source.current = stream;
      setState("following");
      stream.addEventListener("piece", (event: MessageEvent<string>) => {
        const piece = JSON.parse(event.data) as LogPiece;
        setPieces((before) => [...before, piece]);
        setShown(piece.offset + piece.length);
      });
      stream.addEventListener("end", () => {
        stream.close();
        setState("complete");
      });
      stream.addEventListener("error", () => {
        if (stream.readyState !== EventSource.CLOSED) return; // the browser goes on by itself, from where it was
        setState("failed");
        setProblem("The stream of the log was refused. It may be one of too many, or your session has ended.");
      });
    },
    [attemptId],
  );

  const read = useCallback(
    async (from: number) => {
      setState("reading");
      setProblem("");
      try {
        const page = await logPage(attemptId, from);
        if (gone.current) return;
        setPieces((before) => (from === 0 ? page.data : [...before, ...page.data]));
        setShown(page.next_offset);
        setRemoved(page.removed ?? "");
        const grew = page.next_offset > from;
        if (page.complete || (page.removed ?? "") !== "") {
          setMore(false);
          setState("complete");
        } else if (grew && page.data.length > 0 && page.next_offset - from > 900_000) {
          setMore(true);
          setState("idle");
        } else {
          setMore(false);
          follow(page.next_offset);
        }
      } catch (error) {
        if (gone.current) return;
        setState("failed");
        setProblem(messageOf(error));
      }
    },
    [attemptId, follow],
  );

  useEffect(() => {
    gone.current = false;
    void read(0); // eslint-disable-line react-hooks/set-state-in-effect -- it begins to read an outside thing

    return () => {
      gone.current = true;
      source.current?.close();
    };
  }, [read]);

  const readMore = useCallback(() => void read(shown), [read, shown]);

  return { pieces, shown, more, state, problem, removed, readMore };
}
