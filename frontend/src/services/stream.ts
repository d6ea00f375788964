/** The state of the stream of changes, for people to see. */
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
  /** onReset is called when changes may have been missed: everything must be read again. */
  onReset: () => void;
  onState: (state: StreamState) => void;
  /** onRefused is called when the server answered with something other than a stream. */
  onRefused: () => void;
  /** onOpen is called each time that the server answers with a stream. */
  onOpen?: () => void;
}

const CLOSED = 2;
const FIRST_DELAY = 1000;
const LONGEST_DELAY = 30_000;
/** A stream without a message for this long is dead. */
export const SILENT = 40_000; // ms: two of the `alive` events that an idle server sends every 15 s, and time to come

/** Backoff is how long to wait, in ms, before a stream that was refused is opened again: longer each time. */
export class Backoff {
  private delay = FIRST_DELAY;

  next(): number {
    const { delay } = this;
    this.delay = Math.min(delay * 2, LONGEST_DELAY);

    return delay * (0.75 + Math.random() / 2);
  }

  reset(): void {
    this.delay = FIRST_DELAY;
  }
}

/**
 * ChangeStream keeps one stream of changes open. A browser reopens a cut stream,
 * but gives up after an answer other than 200 and may sleep through the end of a
 * connection: ChangeStream mends both, and then reads everything again.
 */
export class ChangeStream {
  private source: Source | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly backoff = new Backoff();
  private hears: ReturnType<typeof setTimeout> | undefined;
  private running = false;

  constructor(private readonly options: StreamOptions) {}

  start(): void {
    if (this.running) return;
    this.running = true;
    this.backoff.reset();
    this.options.onState("connecting");
    this.connect();
  }

  /** pause closes the stream until start; later changes are read then. */
  pause(): void {
    this.stop();
    this.options.onState("paused");
  }

  stop(): void {
    this.running = false;
    this.close();
  }

  /** sleep closes the stream until wake: a browser opens few connections to one server. */
  sleep(): void {
    if (this.running) this.close();
  }

  /** wake reopens a stream that may have died while the machine slept or was offline. */
  wake(): void {
    if (!this.running) return;
    this.backoff.reset();
    this.options.onState("reconnecting");
    this.connect();
  }

  private connect(): void {
    this.close();

    const source = this.options.open();
    let opened = false;
    this.source = source;
    this.heard(); // a connection may hang before it opens
    source.addEventListener("open", () => {
      if (this.source !== source) return;
      this.backoff.reset();
      this.heard();
      this.options.onState("live");
      this.options.onOpen?.();
      // now: changes since the page was read came before it.
      if (!opened) this.options.onReset();
      opened = true;
    });
    source.addEventListener("error", () => {
      if (this.source === source) this.failed(source);
    });
    source.addEventListener("change", (event) => {
      this.heard();
      this.options.onChange(JSON.parse(event.data) as Change);
    });
    source.addEventListener("reset", () => {
      this.heard();
      this.options.onReset();
    });
    source.addEventListener("alive", () => this.heard());
  }

  /** heard waits for the next byte: a connection can die without an end that the browser sees. */
  private heard(): void {
    clearTimeout(this.hears);
    this.hears = setTimeout(() => this.wake(), SILENT);
  }

  private close(): void {
    clearTimeout(this.timer);
    clearTimeout(this.hears);
    this.source?.close();
    this.source = null;
  }

  private failed(source: Source): void {
    this.options.onState("reconnecting");
    if (source.readyState !== CLOSED) return; // the browser tries again, with Last-Event-ID

    this.options.onRefused();
    clearTimeout(this.timer);
    clearTimeout(this.hears);
    this.timer = setTimeout(() => this.connect(), this.backoff.next());
  }
}
