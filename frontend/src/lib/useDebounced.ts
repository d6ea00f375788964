import { useEffect, useState } from "react";

/** useDebounced returns a value once it has not changed for this many milliseconds. */
export function useDebounced<T>(value: T, delay = 400): T {
  const [settled, setSettled] = useState(value);

  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), delay);

    return () => clearTimeout(timer);
  }, [value, delay]);

  return settled;
}
