import { Link } from "@tanstack/react-router";
import { num, right, Table } from "@/components/Table";
import { ago, bytes, count } from "@/lib/format";
import type { Block } from "@/lib/packing";

interface Props {
  label: string;
  blocks: Block[];
  now: number;
}

/** The leases on a memory, as blocks as wide as their reservation; the same as a table below. */
export function PackingMap({ label, blocks, now }: Props) {
  if (blocks.length === 0) return null;

  return (
    <div>
      <div className="map" role="group" aria-label={`${label}: ${count(blocks.length, "attempt")} by reserved memory`}>
        {blocks.map((block) => (
          <Link
            key={block.lease.attempt_id}
            to="/sweeps/$sweepId/trials/$number"
            params={{ sweepId: block.lease.sweep_id, number: String(block.lease.trial) }}
            className={block.lease.state === "suspect" ? "block suspect" : "block"}
            style={{ left: `${100 * block.from}%`, width: `${100 * block.share}%` }}
            tabIndex={-1} // there may be hundreds; the table below has the same links
            aria-label={blockText(block)}
            title={blockText(block)}
          >
            {block.lease.trial}
          </Link>
        ))}
      </div>
      <details>
        <summary>What holds it ({count(blocks.length, "attempt")})</summary>
        <Table
          label={label}
          heads={["Sweep", num("Trial"), right("Reserved"), num("Since"), "State"]}
          rows={blocks.map(({ lease, bytes: size }) => ({
            key: lease.attempt_id,
            cells: [
              <Link to="/sweeps/$sweepId" params={{ sweepId: lease.sweep_id }} className="clip">
                {lease.sweep_name}
              </Link>,
              <>
                <Link
                  to="/sweeps/$sweepId/trials/$number"
                  params={{ sweepId: lease.sweep_id, number: String(lease.trial) }}
                >
                  {lease.trial}
                </Link>
                {lease.purpose === "probe" && " (probe)"}
              </>,
              bytes(size),
              ago(lease.since, now),
              stateText(lease.state, lease.attempt_state),
            ],
          }))}
        />
      </details>
    </div>
  );
}

function blockText({ lease, bytes: size }: Block): string {
  return `Trial ${lease.trial} of ${lease.sweep_name}, ${bytes(size)}, ${stateText(lease.state, lease.attempt_state)}`;
}

function stateText(state: Block["lease"]["state"], attempt: string): string {
  if (state === "suspect") return "its worker is silent; held until its container is known to be gone";

  return attempt === "placed" ? "starting" : attempt;
}
