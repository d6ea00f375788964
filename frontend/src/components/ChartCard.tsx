import { Title } from "@mantine/core";
import { Suspense, useState, type ReactNode } from "react";
import { Loading } from "@/components/Loading";

interface Props {
  title: string;
  /** note says how to read the chart, and names the left out parts. */
  note?: ReactNode;
  children: ReactNode;
  /** twin is the chart as a table; it is made once it is opened. */
  twin: () => ReactNode;
}

/** A chart with its title, a note, and the same as a table. */
export function ChartCard({ title, note, children, twin }: Props) {
  const [open, setOpen] = useState(false);

  return (
    <section className="card" aria-label={title}>
      <Title order={2} mb={4}>
        {title}
      </Title>
      {note !== undefined && <div className="chartnote">{note}</div>}
      <Suspense fallback={<Loading what="the chart" />}>{children}</Suspense>
      <details style={{ marginTop: 8 }} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>View as table</summary>
        {open && <div style={{ marginTop: 8 }}>{twin()}</div>}
      </details>
    </section>
  );
}

/** The meaning of a colour or a shape of a chart. */
export function Legend({ items }: { items: { text: string; color: string; dashName?: string }[] }) {
  return (
    <ul className="plain" style={{ display: "flex", flexWrap: "wrap", gap: "2px 14px" }}>
      {items.map((item, i) => (
        <li key={i}>
          <span className="dot" style={{ background: item.color }} aria-hidden="true" />
          {item.text}
          {item.dashName !== undefined && item.dashName !== "" && ` (${item.dashName})`}
        </li>
      ))}
    </ul>
  );
}
