import { useNavigate, useRouter } from "@tanstack/react-router";
import type { ProblemItem, Sweep } from "@/services/sweeps";

declare module "@tanstack/react-router" {
  interface HistoryState {
    /** The server's answer about the new sweep; it is shown once. */
    warnings?: ProblemItem[];
  }
}

/**
 * useShowSweep is called when a request for a new sweep is sent. Its result shows
 * that sweep, unless the user has gone to another page since.
 */
export function useShowSweep(): () => (sweep: Sweep) => Promise<void> {
  const router = useRouter();
  const navigate = useNavigate();

  return () => {
    const from = router.state.location.pathname;

    return async (sweep) => {
      if (router.state.location.pathname !== from) return;
      await navigate({
        to: "/sweeps/$sweepId",
        params: { sweepId: sweep.id },
        state: { warnings: sweep.warnings ?? [] },
      });
    };
  };
}
