import { useCallback, useEffect, useRef, useState } from "react";
import { messageOf } from "@/api/errors";
import { whileHidden } from "@/lib/hidden";
import { LogFollower, type Next } from "@/services/followLog";
import { full, LOG_PAGE, logEnd, logPage, type LogPage, type LogPiece } from "@/services/log";
import { passes } from "@/services/query";

export interface Log {
  pieces: LogPiece[];
  /** start is the byte with which the shown part begins. */
  start: number;
  /** shown is the byte behind the shown part. */
  shown: number;
  /** more says that the server may have more than is shown. */
  more: boolean;
  state: Next | "reading" | "retrying" | "failed";
  problem: string;
  readMore: () => void;
  /** toEnd skips to the last part. */
  toEnd: () => void;
  toStart: () => void;
}

/**
 * useLog reads a log page by page from its beginning; one that is still written is
 * followed from its end, unless updates are paused.
 */
export function useLog(attemptId: string, paused = false): Log {
  const [pieces, setPieces] = useState<LogPiece[]>([]);
  const [start, setStart] = useState(0);
  const [shown, setShown] = useState(0);
  const [state, setState] = useState<Log["state"]>("reading");
  const [more, setMore] = useState(false);
  const [problem, setProblem] = useState("");
  const follower = useRef<LogFollower | null>(null);
  const end = useRef(0); // shown, as callbacks see it
  const turn = useRef(0); // of the newest request: answers to earlier ones are dropped
  const busy = useRef(false);
  const holds = useRef(paused); // paused, as callbacks see it
  const now = useRef<Log["state"]>("reading"); // state, as callbacks see it
  const seen = useRef(false); // something of the log was read, be it that nothing is in it

  const turnTo = useCallback((next: Log["state"], why?: string) => {
    now.current = next;
    setState(next);
    if (why !== undefined) setProblem(why);
  }, []);

  /** append adds pieces behind the shown ones; it drops a piece that a second answer repeats. */
  const append = useCallback((fresh: LogPiece[]) => {
    seen.current = true;
    const unseen = fresh.filter((piece) => {
      if (piece.offset < end.current) return false;
      end.current = piece.offset + piece.length;

      return true;
    });
    setPieces((before) => [...before, ...unseen]);
    setShown(end.current);
  }, []);

  /** take appends a page's pieces. */
  const take = useCallback(
    (page: LogPage) => {
      append(page.data);
      end.current = Math.max(end.current, page.next_offset);
      setShown(end.current);
    },
    [append],
  );

  const followed = useCallback((): LogFollower => {
    follower.current ??= new LogFollower({
      attemptId,
      from: () => end.current,
      onPiece: (piece) => append([piece]),
      onPage: (page) => {
        take(page);
        setMore(!page.complete && full(page));

        return next(page, holds.current);
      },
      onState: turnTo,
      onRefused: (error) => turnTo("failed", messageOf(error)),
    });

    return follower.current;
  }, [attemptId, append, take, turnTo]);

  /** goOn continues from the last position; while updates are paused the shown part stays. */
  const goOn = useCallback(() => {
    if (!holds.current) followed().start();
    else if (!seen.current) followed().retry();
    else turnTo("paused", "");
  }, [followed, turnTo]);

  /** read shows the page that begins where choose says; "go on" is behind the shown part. */
  const read = useCallback(
    async (choose: () => Promise<number>) => {
      const mine = ++turn.current;
      busy.current = true;
      follower.current?.stop();
      turnTo("reading"); // the problem, and its button, stay until the answer arrives
      let from = -1;
      try {
        from = await choose();
        const page = await logPage(attemptId, from);
        if (mine !== turn.current) return;
        if (from !== end.current || from === 0) {
          setPieces([]);
          setStart(from);
          end.current = from;
        }
        take(page);
        setMore(!page.complete && full(page));
        const then = next(page, holds.current);
        if (then === "following") goOn();
        else turnTo(then, "");
      } catch (error) {
        if (mine !== turn.current) return;
        if (from === end.current && passes(error)) followed().retry(error);
        else turnTo("failed", messageOf(error));
      } finally {
        if (mine === turn.current) busy.current = false;
      }
    },
    [attemptId, take, goOn, followed, turnTo],
  );

  useEffect(() => {
    const turns = turn;
    seen.current = false;
    void read(() => Promise.resolve(0)); // eslint-disable-line react-hooks/set-state-in-effect -- it begins to read an outside thing

    return () => {
      turns.current++;
      follower.current?.stop();
      follower.current = null;
    };
  }, [read]);

  useEffect(() => {
    holds.current = paused;
    if (paused ? follower.current?.stop() === true : now.current === "paused") goOn();
  }, [paused, goOn]);

  useEffect(() => {
    let slept = false;

    return whileHidden(
      () => {
        slept = follower.current?.stop() === true;
      },
      () => {
        if (follower.current?.stop() === true || slept) goOn();
        slept = false;
      },
    );
  }, [goOn]);

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

  return { pieces, start, shown, more, state, problem, readMore, toEnd, toStart };
}

/** next says how the log goes on behind a page: page by page behind a full one. */
function next(page: LogPage, paused: boolean): Next {
  if (page.complete) return "complete";
  if (full(page)) return "idle";

  return paused ? "paused" : "following";
}
