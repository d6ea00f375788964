import type { QueryClient } from "@tanstack/react-query";
import { apiUrl } from "@/api/config";
import { holdClock } from "@/lib/useNow";
import { whileHidden } from "@/lib/hidden";
import { holdPages, isPaused, keepPaused, wasPaused } from "@/lib/paused";
import { Invalidator } from "@/services/changes";
import { meQuery } from "@/services/session";
import { ChangeStream, type StreamState } from "@/services/stream";

/** Live is the one stream of a tab, and its effect on the queries. */
export class Live {
  private state: StreamState = "connecting";
  private readonly listeners = new Set<() => void>();
  private readonly stream: ChangeStream;
  private readonly invalidator: Invalidator;
  private begun = false;

  constructor(private readonly queries: QueryClient) {
    this.invalidator = new Invalidator(queries);
    const readMe = () => void queries.query({ ...meQuery, staleTime: 0 }).catch(() => undefined);
    this.stream = new ChangeStream({
      open: () => new EventSource(apiUrl("/events")),
      onChange: (change) => this.invalidator.change(change),
      onReset: () => this.invalidator.reset(),
      onState: (state) => {
        this.state = state;
        holdClock(state === "paused");
        holdPages(state === "paused");
        this.listeners.forEach((listener) => listener());
      },
      // An EventSource does not say why it was refused. A 401 here shows the log-in page.
      onRefused: readMe,
      onOpen: readMe, // another tab may have logged in as someone else
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);

    return () => this.listeners.delete(listener);
  };

  readonly current = (): StreamState => this.state;

  /** start opens the stream and watches whether the page is shown; the result ends both. */
  start(): () => void {
    if (this.begun ? isPaused() : wasPaused()) this.stream.pause();
    else this.stream.start();
    this.begun = true; // a log-in starts it again

    let asleep = false;
    const online = () => {
      if (!asleep) this.stream.wake(); // a hidden page opens its stream when it is shown
    };
    const shown = whileHidden(
      () => {
        asleep = true;
        this.stream.sleep();
        this.invalidator.stop(); // a hidden page reads nothing: waking reads it all
      },
      () => {
        asleep = false;
        this.stream.wake();
      },
    );
    window.addEventListener("online", online);

    return () => {
      shown();
      window.removeEventListener("online", online);
      this.stream.stop();
      this.invalidator.stop();
    };
  }

  setPaused(paused: boolean): void {
    keepPaused(paused);
    if (paused) {
      this.stream.pause();
      this.invalidator.stop();
    } else this.stream.start();
    // When a read that failed is tried again was decided before.
    for (const query of this.queries.getQueryCache().getAll()) if (query.state.status === "error") query.setState({});
  }
}
