import { Title } from "@mantine/core";
import { count, grouped, percent } from "@/lib/format";
import type { Insight } from "@/services/overview";

interface Props {
  insight: Insight;
  metric: string;
}

/** How much each parameter tells the best trials from all; a table with bars. */
export function ImportanceCard({ insight, metric }: Props) {
  const { importance, importance_of: of, from_trial: from } = insight;

  return (
    <section className="card" aria-label="Importance of parameters">
      <Title order={2} mb={4}>
        Importance of parameters
      </Title>
      {of.problem !== undefined ? (
        <p style={{ margin: 0 }}>{of.problem}</p>
      ) : (
        <>
          <div className="chartnote">
            How far the values of the best {percent(of.top_share)} of {count(of.trials, "trial")} by {metric} differ
            from those of all, as a share of all differences. A parameter that only some trials have is judged among
            those. It says where the best are, not why. Method: PED-ANOVA (Watanabe et al., 2023), as Optuna has it.
            {from > 1 && ` Trials before ${grouped(from)} do not count.`}
          </div>
          <table className="table" aria-label="Importance of parameters">
            <thead>
              <tr>
                <th scope="col">Parameter</th>
                <th scope="col" className="right">
                  Importance
                </th>
                <th aria-hidden="true" style={{ width: "60%" }} />
              </tr>
            </thead>
            <tbody>
              {importance.map((one) => (
                <tr key={one.parameter}>
                  <td>{one.parameter}</td>
                  <td className="num right">
                    {one.importance === undefined ? "too few trials" : percent(one.importance)}
                  </td>
                  <td aria-hidden="true">
                    <div
                      style={{
                        width: `${100 * (one.importance ?? 0)}%`,
                        height: 12,
                        borderRadius: 2,
                        background: "var(--run)",
                      }}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}
