import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { readNumbers, toggled, writeNumbers } from "@/lib/overview/selection";

export interface Chosen {
  /** text is the address's form: numbers and ranges. */
  text: string;
  set: ReadonlySet<number>;
  choose: (trials: number[]) => void;
  toggle: (trial: number) => void;
}

/** useChosen is the one selection of trials of a sweep's page, which is in the address. */
export function useChosen(): Chosen {
  const { trials = "" } = useSearch({ from: "/sweeps/$sweepId" });
  const navigate = useNavigate({ from: "/sweeps/$sweepId" });
  const set = useMemo(() => new Set(readNumbers(trials)), [trials]);

  const choose = useCallback(
    (numbers: number[]) =>
      void navigate({
        to: "/sweeps/$sweepId",
        search: (before) => {
          const next = { ...before };
          delete next.trials;

          return numbers.length > 0 ? { ...next, trials: writeNumbers(numbers) } : next;
        },
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  const toggle = useCallback((trial: number) => choose(toggled(set, trial)), [choose, set]);

  return { text: trials, set, choose, toggle };
}
