import { Icon } from "@/components/Icon";
import { num, Table } from "@/components/Table";
import type { Finding } from "@/services/health";

/** rank puts problems first, then warnings. */
function rank(finding: Finding): number {
  return !finding.ok ? 0 : finding.warn === true ? 1 : 2;
}

const looks = [
  { text: "Wrong", icon: "cross", color: "var(--bad)" },
  { text: "Soon", icon: "warning", color: "var(--warn)" },
  { text: "Good", icon: "check", color: "var(--done)" },
] as const;

/** Each part of Berth with its state and the next step, problems first. */
export function Findings({ findings }: { findings: Finding[] }) {
  const order = findings.toSorted((a, b) => rank(a) - rank(b));

  return (
    <Table
      label="Parts of Berth"
      heads={[num("State"), "Part", "What is seen", "What to do"]}
      rows={order.map((finding, i) => {
        const look = looks[rank(finding)] ?? looks[2];

        return {
          key: `${finding.part}/${i}`,
          cells: [
            <span className="state">
              <Icon name={look.icon} color={look.color} />
              {look.text}
            </span>,
            finding.part,
            <span className="break">{finding.what}</span>,
            <span className="break">{finding.next}</span>,
          ],
        };
      })}
    />
  );
}

/** troubles says in a few words how many parts are wrong, or will be; "" = none. */
export function troubles(findings: Finding[]): string {
  const wrong = findings.filter((finding) => rank(finding) === 0).length;
  const soon = findings.filter((finding) => rank(finding) === 1).length;
  if (wrong > 0) return wrong === 1 ? "1 problem" : `${wrong} problems`;

  return soon === 0 ? "" : soon === 1 ? "1 warning" : `${soon} warnings`;
}
