import { Title } from "@mantine/core";
import { Kept } from "@/components/Kept";
import { Note } from "@/components/Note";
import { right, Table } from "@/components/Table";
import { bytes, cores, grouped } from "@/lib/format";
import type { KeptHost } from "@/services/hosts";
import type { Rejection } from "@/services/trials";

/** amount writes a rejection's amounts in their own unit. */
export function amount(dimension: string, n: number): string {
  if (/memory|bytes|disk/.test(dimension)) return bytes(n);
  if (/cpu|core/.test(dimension)) return cores(n);

  return grouped(n);
}

interface Props {
  rejections: Rejection[];
  kept?: KeptHost | undefined;
}

/** Why a trial does not run, candidate by candidate, and the capacity kept free for it. */
export function Waiting({ rejections, kept }: Props) {
  return (
    <section aria-label="Why it waits">
      <Title order={2} mb="xs">
        Why it waits
      </Title>
      {kept && (
        <Note kind="plain">
          <Kept host={kept} />
        </Note>
      )}
      <Table
        label="Why it waits"
        heads={["Candidate", "Reason", right("Needed"), right("Free")]}
        rows={rejections.map((r) => ({
          key: `${r.host_id ?? ""}/${r.device_id ?? ""}/${r.dimension}`,
          cells: [
            <>
              {r.host_name ?? r.host_id ?? "every machine"}
              {r.device_id !== undefined && <div className="mono clip">{r.device_id}</div>}
            </>,
            <>
              {r.reason}
              {r.never === true && <strong> It would not fit even when the candidate is empty.</strong>}
            </>,
            r.needed === 0 ? "–" : amount(r.dimension, r.needed),
            r.needed === 0 ? "–" : amount(r.dimension, r.free),
          ],
        }))}
      />
    </section>
  );
}
