/** What the stream of changes is doing, for people to see. */
export type StreamState = "connecting" | "live" | "reconnecting" | "paused";

/** The part of EventSource that is used, so that a test can stand in for it. */
export interface Source {
  readyState: number;
  addEventListener(kind: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export interface Change {
  kind: string;
  sweep_id?: string;
  subject: string;
  trial?: number;
}

export interface StreamOptions {
  open: () => Source;
  /** onChange hears of each change. */
  onChange: (change: Change) => void;
  /** onReset is called when changes may have been missed: everything must be read anew. */
  onReset: () => void;
  onState: (state: StreamState) => void;
  /** onRefused is called when the server answered with something other than a stream. */
  onRefused: () => void;
}

const CLOSED = 2;
const FIRST_DELAY = 1000;
const LONGEST_DELAY = 30_000;

/**
 * ChangeStream keeps one stream of changes open. A browser reopens a stream that
 * was cut, but gives up after an answer other than 200 and may sleep through the
 * end of a connection: both are mended here, and everything is read anew.
 */
export class ChangeStream {
  private source: Source | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private delay = FIRST_DELAY;
  private interrupted = false;
  private running = false;

  constructor(private readonly options: StreamOptions) {}

  start(): void {
    if (this.running) return;
    this.running = true;
    this.delay = FIRST_DELAY;
    this.options.onState("connecting");
    this.connect();
  }

  /** pause closes the stream until start; what changed meanwhile is read then. */
  pause(): void {
    this.stop();
    this.interrupted = true;
    this.options.onState("paused");
  }

  stop(): void {
    this.running = false;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  /** wake reopens a stream that may have died while the machine slept or was offline. */
  wake(): void {
    if (!this.running) return;
    this.interrupted = true;
    this.delay = FIRST_DELAY;
    this.options.onState("reconnecting");
    this.connect();
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.source?.close();

    const source = this.options.open();
    this.source = source;
    source.addEventListener("open", () => {
      if (this.source !== source) return;
      this.delay = FIRST_DELAY;
      this.options.onState("live");
      if (this.interrupted) this.options.onReset();
      this.interrupted = false;
    });
    source.addEventListener("error", () => {
      if (this.source === source) this.failed(source);
    });
    source.addEventListener("change", (event) => this.options.onChange(JSON.parse(event.data) as Change));
    source.addEventListener("reset", () => this.options.onReset());
  }

  private failed(source: Source): void {
    this.options.onState("reconnecting");
    if (source.readyState !== CLOSED) return; // the browser tries again, with Last-Event-ID

    this.interrupted = true;
    this.options.onRefused();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY);
  }
}
