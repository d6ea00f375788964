import type { QueryClient } from "@tanstack/react-query";
import { apiUrl } from "@/api/config";
import { Invalidator } from "@/services/changes";
import { meQuery } from "@/services/session";
import { ChangeStream, type StreamState } from "@/services/stream";

const SLEPT = 30_000; // ms: two of the comments that a stream sends when nothing changes

/** Live is the one stream of a tab, and what it does to the queries. */
export class Live {
  private state: StreamState = "connecting";
  private readonly listeners = new Set<() => void>();
  private readonly stream: ChangeStream;
  private readonly invalidator: Invalidator;
  private hiddenAt = 0;

  constructor(queries: QueryClient) {
    this.invalidator = new Invalidator(queries);
    this.stream = new ChangeStream({
      open: () => new EventSource(apiUrl("/events")),
      onChange: (change) => this.invalidator.change(change),
      onReset: () => this.invalidator.reset(),
      onState: (state) => {
        this.state = state;
        this.listeners.forEach((listener) => listener());
      },
      // An EventSource does not say why it was refused. A 401 here shows the log-in page.
      onRefused: () => void queries.query({ ...meQuery, staleTime: 0 }).catch(() => undefined),
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);

    return () => this.listeners.delete(listener);
  };

  readonly current = (): StreamState => this.state;

  /** start opens the stream and watches for sleep; the result ends both. */
  start(): () => void {
    if (isPaused()) this.stream.pause();
    else this.stream.start();

    const seen = () => {
      if (document.hidden) this.hiddenAt = Date.now();
      else if (this.hiddenAt > 0 && Date.now() - this.hiddenAt > SLEPT) this.stream.wake();
    };
    const online = () => this.stream.wake();
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("online", online);

    return () => {
      document.removeEventListener("visibilitychange", seen);
      window.removeEventListener("online", online);
      this.stream.stop();
      this.invalidator.stop();
    };
  }

  setPaused(paused: boolean): void {
    localStorage.setItem(PAUSED, paused ? "yes" : "no");
    if (paused) this.stream.pause();
    else this.stream.start();
  }
}

const PAUSED = "berth-live-paused";

function isPaused(): boolean {
  return localStorage.getItem(PAUSED) === "yes";
}
