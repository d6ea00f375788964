import { useEffect, useState } from "react";

let held = false;

/** holdClock stops what useNow gives while live updates are paused: pages stay as they are. */
export function holdClock(hold: boolean): void {
  held = hold;
}

/** useNow is the time, moving once in so many milliseconds: durations of what runs grow by it. */
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
