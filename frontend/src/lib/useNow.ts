import { useEffect, useState } from "react";

let held = false;

/** holdClock stops the clock of useNow while live updates are paused: pages stay as they are. */
export function holdClock(hold: boolean): void {
  held = hold;
}

/** useNow returns the current time and re-renders every `every` ms: durations of running things grow by it. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    const timer = setInterval(() => {
      if (!held) setNow(Date.now());
    }, every);

    return () => clearInterval(timer);
  }, [every]);

  return now;
}
