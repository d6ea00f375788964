import { isAway } from "@/api/errors";
import { logPage, logStream, type LogPage, type LogPiece } from "@/services/log";
import { Backoff, SILENT } from "@/services/stream";

export interface FollowOptions {
  attemptId: string;
  /** from is the byte behind what is there already. */
  from: () => number;
  onPiece: (piece: LogPiece) => void;
  /** onPage takes a page that was read without the stream, and says how the log goes on behind it; idle = page by page. */
  onPage: (page: LogPage) => "complete" | "idle" | "following";
  onState: (state: "following" | "retrying" | "complete" | "idle", problem: string) => void;
  /** onRefused is told why the server gives no more of the log. */
  onRefused: (error: unknown) => void;
}

const CUT = "The server did not give the log, or its rest; trying again.";
const TOO_MANY = `${CUT} You may have too many streams open: close other tabs.`;

/**
 * LogFollower follows a log that is still written. A browser reopens a stream that was
 * cut, but gives up after an answer other than 200, such as that of a proxy while the
 * server restarts, and does not tell what it was. Then a page is read, after a pause that
 * grows: it goes on from where the stream was cut, or says why not. A connection can also
 * die without a word.
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

  /** retry begins after what could not be read for now. */
  retry(): void {
    this.runs = true;
    this.backoff.reset();
    this.later(CUT);
  }

  /** stop says whether it followed until now. */
  stop(): boolean {
    const { runs } = this;
    this.runs = false;
    this.close();

    return runs;
  }

  /** open begins a stream; refused is what a person is told when there is none. */
  private open(refused: string): void {
    this.close();

    const stream = new EventSource(logStream(this.options.attemptId, this.options.from()));
    const on = (kind: string, listener: (event: MessageEvent<string>) => void) =>
      stream.addEventListener(kind, (event: MessageEvent<string>) => {
        if (this.source !== stream) return;
        this.heard();
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
      if (stream.readyState === EventSource.CLOSED) this.later(problem); // else the browser goes on by itself
    });
  }

  /** heard waits for the next byte. */
  private heard(): void {
    clearTimeout(this.hears);
    this.hears = setTimeout(() => this.open(CUT), SILENT);
  }

  private later(problem: string): void {
    this.close();
    this.options.onState("retrying", problem);
    this.timer = setTimeout(() => void this.readOn(), this.backoff.next());
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
      if (isAway(error)) this.later(CUT);
      else {
        this.stop();
        this.options.onRefused(error);
      }
    }
  }

  private end(state: "complete" | "idle"): void {
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
