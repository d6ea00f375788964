import { Title } from "@mantine/core";
import { bytes, cores, grouped } from "@/lib/format";
import type { Rejection } from "@/services/trials";

/** amount writes what a rejection is about in its own unit. */
export function amount(dimension: string, n: number): string {
  if (/memory|bytes|disk/.test(dimension)) return bytes(n);
  if (/cpu|core/.test(dimension)) return cores(n);

  return grouped(n);
}

/** Why a trial does not run, candidate by candidate. */
export function Waiting({ rejections }: { rejections: Rejection[] }) {
  return (
    <section aria-label="Why it waits">
      <Title order={2} mb="xs">
        Why it waits
      </Title>
      <div className="tablewrap">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Candidate</th>
              <th scope="col">Reason</th>
              <th scope="col" className="right">
                Needed
              </th>
              <th scope="col" className="right">
                Free
              </th>
            </tr>
          </thead>
          <tbody>
            {rejections.map((r) => (
              <tr key={`${r.host_id ?? ""}/${r.device_id ?? ""}/${r.dimension}`}>
                <td>
                  {r.host_name ?? r.host_id ?? "every machine"}
                  {r.device_id !== undefined && <div className="mono clip">{r.device_id}</div>}
                </td>
                <td>
                  {r.reason}
                  {r.never === true && <strong> It would not fit even when the candidate is empty.</strong>}
                </td>
                <td className="num right">{r.needed === 0 ? "–" : amount(r.dimension, r.needed)}</td>
                <td className="num right">{r.needed === 0 ? "–" : amount(r.dimension, r.free)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
