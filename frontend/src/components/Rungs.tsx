import { Title } from "@mantine/core";
import { num, right, Table } from "@/components/Table";
import { When } from "@/components/When";
import { decimal, grouped } from "@/lib/format";
import type { Rung } from "@/services/trials";

/** Where early stopping judged a trial, and why it went on or was stopped. */
export function Rungs({ rungs, metric = "Value" }: { rungs: Rung[]; metric: string | undefined }) {
  return (
    <section aria-label="Early stopping">
      <Title order={2} mb="xs">
        Early stopping
      </Title>
      <Table
        label="Early stopping"
        heads={[right("Step"), right(metric), "Decision", "Why", num("When")]}
        rows={rungs.map((rung) => ({
          key: String(rung.rung),
          cells: [
            grouped(rung.step),
            rung.value === undefined ? "no number" : decimal(rung.value),
            rung.stop ? <strong>stopped</strong> : "goes on",
            rung.why,
            <When at={rung.at} />,
          ],
        }))}
      />
    </section>
  );
}
