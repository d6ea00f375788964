import { logPage, logStream, type LogPage, type LogPiece } from "@/services/log";
import { passes } from "@/services/query";
import { Backoff, SILENT } from "@/services/stream";

/** How a log goes on behind a page: not at all, page by page, by a stream, or by a stream once updates are live again. */
export type Next = "complete" | "idle" | "following" | "paused";

export interface FollowOptions {
  attemptId: string;
  /** from is the byte behind the shown part. */
  from: () => number;
  onPiece: (piece: LogPiece) => void;
  /** onPage takes a page that was read without the stream, and says how the log goes on behind it. */
  onPage: (page: LogPage) => Next;
  onState: (state: Next | "retrying", problem: string) => void;
  /** onRefused gets the server's reason for ending the log. */
  onRefused: (error: unknown) => void;
}

const CUT = "The server did not give the log, or its rest; trying again.";
const TOO_MANY = `${CUT} You may have too many streams open: close other tabs.`;

/**
 * LogFollower follows a log that is still written. A browser reopens a cut stream every
 * few seconds while no server answers, but gives up after an answer other than 200, such
 * as a proxy's while the server restarts, and does not report the status. LogFollower then
 * reads a page, after a growing back-off: it goes on where the stream was cut, or says why
 * not. A connection can also die silently.
 */
export class LogFollower {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hears: ReturnType<typeof setTimeout> | undefined;
  private turn = 0; // of the newest try: the answer to an earlier one is dropped
  private readonly backoff = new Backoff();
  private runs = false;

  constructor(private readonly options: FollowOptions) {}

  start(): void {
    this.runs = true;
    this.backoff.reset();
    this.options.onState("following", "");
    this.open(CUT);
  }

  /** retry begins after a failed read; error is its reason. */
  retry(error?: unknown): void {
    this.runs = true;
    this.backoff.reset();
    this.later(CUT, error);
  }

  /** stop says whether it followed until now. */
  stop(): boolean {
    const { runs } = this;
    this.runs = false;
    this.close();

    return runs;
  }

  /** open begins a stream; refused is the message when there is none. */
  private open(refused: string): void {
    this.close();

    const stream = new EventSource(logStream(this.options.attemptId, this.options.from()));
    const on = (kind: string, listener: (event: MessageEvent<string>) => void) =>
      stream.addEventListener(kind, (event: MessageEvent<string>) => {
        if (this.source !== stream) return;
        if (kind !== "error") this.heard();
        listener(event);
      });
    let problem = refused;
    this.source = stream;
    this.heard();
    on("open", () => {
      problem = CUT;
      this.backoff.reset();
      this.options.onState("following", "");
    });
    on("piece", (event) => this.options.onPiece(JSON.parse(event.data) as LogPiece));
    on("alive", () => undefined);
    on("end", () => this.end("complete"));
    on("error", () => {
      if (stream.readyState === EventSource.CLOSED) this.later(problem);
      else this.options.onState("retrying", CUT); // by the browser
    });
  }

  /** heard waits for the next byte. */
  private heard(): void {
    clearTimeout(this.hears);
    this.hears = setTimeout(() => {
      this.options.onState("retrying", CUT);
      this.open(CUT);
    }, SILENT);
  }

  /** later reads a page after a back-off: at least as long as the server asked for in error. */
  private later(problem: string, error?: unknown): void {
    this.close();
    this.options.onState("retrying", problem);
    const asked = passes(error) ? error.retryAfter * 1000 : 0;
    this.timer = setTimeout(() => void this.readOn(), Math.max(asked, this.backoff.next()));
  }

  private async readOn(): Promise<void> {
    const mine = ++this.turn;
    try {
      const page = await logPage(this.options.attemptId, this.options.from());
      if (mine !== this.turn) return;
      const next = this.options.onPage(page);
      if (next === "following") this.open(TOO_MANY);
      else this.end(next);
    } catch (error) {
      if (mine !== this.turn) return;
      if (passes(error)) this.later(CUT, error);
      else {
        this.stop();
        this.options.onRefused(error);
      }
    }
  }

  private end(state: Next): void {
    this.stop();
    this.options.onState(state, "");
  }

  private close(): void {
    this.turn++;
    clearTimeout(this.timer);
    clearTimeout(this.hears);
    this.source?.close();
    this.source = null;
  }
}
