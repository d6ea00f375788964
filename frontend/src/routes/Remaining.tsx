import { useQuery } from "@tanstack/react-query";
import { range } from "@/lib/format";
import { usePaused } from "@/routes/usePaused";
import { etaQuery } from "@/services/sweeps";

/** How long a running sweep of a list still takes; nothing while that is not known. */
export function Remaining({ id }: { id: string }) {
  const paused = usePaused();
  const { data: eta } = useQuery(etaQuery(id, !paused));
  if (!eta) return null;

  return (
    <div style={{ fontSize: 12, color: "var(--mantine-color-dimmed)" }} title={eta.why}>
      {range(eta.min_seconds, eta.max_seconds)} left
    </div>
  );
}
