import { Note } from "@/components/Note";

export interface LocatedProblem {
  code: string;
  pointer: string;
  detail: string;
  line: number;
}

interface Props {
  problems: LocatedProblem[];
  warnings: LocatedProblem[];
  settling: boolean;
}

/** Everything that is wrong with the file, by line. */
export function ProblemList({ problems, warnings, settling }: Props) {
  return (
    <section aria-label="Check" aria-live="polite" aria-busy={settling}>
      {problems.length === 0 ? (
        <Note kind="good">{settling ? "Checking…" : "The file is valid."}</Note>
      ) : (
        <Note kind="bad">
          <strong>{problems.length === 1 ? "One problem" : `${problems.length} problems`}</strong>
          <Items items={problems} />
        </Note>
      )}
      {warnings.length > 0 && (
        <div style={{ marginTop: 8 }}>
          <Note kind="warn">
            <strong>Please note</strong>
            <Items items={warnings} />
          </Note>
        </div>
      )}
    </section>
  );
}

function Items({ items }: { items: LocatedProblem[] }) {
  return (
    <ul style={{ margin: "4px 0 0", paddingLeft: 18 }}>
      {items.map((item) => (
        <li key={item.pointer + item.code + item.detail}>
          Line {item.line}: {item.detail}{" "}
          <span className="mono" style={{ color: "var(--mantine-color-dimmed)" }}>
            {item.code}
          </span>
        </li>
      ))}
    </ul>
  );
}
