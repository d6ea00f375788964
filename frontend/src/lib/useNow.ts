import { useEffect, useState } from "react";

/** useNow is the time, moving once in so many milliseconds: durations of what runs grow by it. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now);

  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);

    return () => clearInterval(timer);
  }, [every]);

  return now;
}
