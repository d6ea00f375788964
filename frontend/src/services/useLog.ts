import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "@/api/errors";
import { whileHidden } from "@/lib/hidden";
import { full, LOG_PAGE, logEnd, logPage, logStream, type LogPiece } from "@/services/log";

export interface Log {
  pieces: LogPiece[];
  /** start is the byte with which the shown part begins. */
  start: number;
  /** shown is the byte behind the shown part. */
  shown: number;
  /** more says that the server may have more than is shown. */
  more: boolean;
  state: "reading" | "following" | "idle" | "complete" | "failed";
  problem: string;
  removed: string;
  readMore: () => void;
  /** toEnd leaves out what lies between and shows the last part. */
  toEnd: () => void;
  toStart: () => void;
}

/** useLog reads a log page by page from its beginning; one that is still written is followed from its end. */
export function useLog(attemptId: string): Log {
  const [pieces, setPieces] = useState<LogPiece[]>([]);
  const [start, setStart] = useState(0);
  const [shown, setShown] = useState(0);
  const [state, setState] = useState<Log["state"]>("reading");
  const [more, setMore] = useState(false);
  const [problem, setProblem] = useState("");
  const [removed, setRemoved] = useState("");
  const source = useRef<EventSource | null>(null);
  const end = useRef(0); // shown, as callbacks see it
  const turn = useRef(0); // of the newest request: answers to earlier ones are dropped
  const busy = useRef(false);

  /** append adds pieces behind what is shown; one that a second answer repeats is dropped. */
  const append = useCallback((fresh: LogPiece[]) => {
    const next = fresh.filter((piece) => {
      if (piece.offset < end.current) return false;
      end.current = piece.offset + piece.length;

      return true;
    });
    setPieces((before) => [...before, ...next]);
    setShown(end.current);
  }, []);

  const follow = useCallback(() => {
    source.current?.close();
    const stream = new EventSource(logStream(attemptId, end.current));
    source.current = stream;
    setState("following");
    stream.addEventListener("piece", (event: MessageEvent<string>) => {
      if (source.current === stream) append([JSON.parse(event.data) as LogPiece]);
    });
    stream.addEventListener("end", () => {
      stream.close();
      if (source.current !== stream) return;
      source.current = null;
      setState("complete");
    });
    stream.addEventListener("error", () => {
      if (stream.readyState !== EventSource.CLOSED) return; // the browser goes on by itself, from where it was
      if (source.current !== stream) return;
      source.current = null;
      setState("failed");
      setProblem("The stream of the log was refused. It may be one of too many, or your session has ended.");
    });
  }, [attemptId, append]);

  /** read shows the page that begins where choose says; "go on" is behind what is shown. */
  const read = useCallback(
    async (choose: () => Promise<number>) => {
      const mine = ++turn.current;
      busy.current = true;
      source.current?.close();
      source.current = null;
      setState("reading");
      setProblem("");
      try {
        const from = await choose();
        const page = await logPage(attemptId, from);
        if (mine !== turn.current) return;
        if (from !== end.current || from === 0) {
          setPieces([]);
          setStart(from);
          end.current = from;
        }
        append(page.data);
        end.current = Math.max(end.current, page.next_offset);
        setShown(end.current);
        setRemoved(page.removed ?? "");
        const over = page.complete || (page.removed ?? "") !== "";
        setMore(!over && full(page));
        if (over) setState("complete");
        else if (full(page)) setState("idle");
        else follow();
      } catch (error) {
        if (mine !== turn.current) return;
        setState("failed");
        setProblem(messageOf(error));
      } finally {
        if (mine === turn.current) busy.current = false;
      }
    },
    [attemptId, append, follow],
  );

  useEffect(() => {
    const turns = turn;
    void read(() => Promise.resolve(0)); // eslint-disable-line react-hooks/set-state-in-effect -- it begins to read an outside thing

    return () => {
      turns.current++;
      source.current?.close();
      source.current = null;
    };
  }, [read]);

  useEffect(() => {
    let slept = false;

    return whileHidden(
      () => {
        slept = source.current !== null;
        source.current?.close();
        source.current = null;
      },
      () => {
        if (slept || source.current) follow();
        slept = false;
      },
    );
  }, [follow]);

  const ask = useCallback(
    (choose: () => Promise<number>) => {
      if (!busy.current) void read(choose);
    },
    [read],
  );
  const readMore = useCallback(() => ask(() => Promise.resolve(end.current)), [ask]);
  const toStart = useCallback(() => ask(() => Promise.resolve(0)), [ask]);
  const toEnd = useCallback(
    () => ask(async () => Math.max(end.current, (await logEnd(attemptId, end.current)) - LOG_PAGE / 2)),
    [ask, attemptId],
  );

  return { pieces, start, shown, more, state, problem, removed, readMore, toEnd, toStart };
}
