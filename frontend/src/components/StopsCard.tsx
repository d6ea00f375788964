import { Title } from "@mantine/core";
import { right, Table } from "@/components/Table";
import { decimal, grouped } from "@/lib/format";
import type { Insight } from "@/services/overview";

interface Props {
  rungs: Insight["rungs"];
  metric: string;
}

/** How many trials early stopping judged at each rung, and how many it stopped. */
export function StopsCard({ rungs, metric }: Props) {
  return (
    <section className="card" aria-label="Early stopping">
      <Title order={2} mb={4}>
        Early stopping
      </Title>
      <Table
        twin
        label="Stops by step"
        heads={["Step", "Trials", "Stopped", `Best ${metric}`, "Best of the stopped"].map(right)}
        rows={rungs.map(({ rung, step, last_step, trials, stopped, best, cut }) => ({
          key: String(rung),
          cells: [
            step === last_step ? grouped(step) : `${grouped(step)} to ${grouped(last_step)}`,
            grouped(trials),
            grouped(stopped),
            best === undefined ? "–" : decimal(best),
            cut === undefined ? "–" : decimal(cut),
          ],
        }))}
      />
    </section>
  );
}
