import { Title } from "@mantine/core";
import { count, grouped, percent } from "@/lib/format";
import { LEAST_TRIALS, type Importance } from "@/lib/overview/importance";

interface Props {
  list: Importance[];
  /** trials have a value. */
  trials: number;
  metric: string;
  /** part: the trials are some of all, chosen by value and age, so that nothing can be said of all. */
  part: boolean;
}

/** How much each parameter tells the best trials from all; a table with bars. */
export function ImportanceCard({ list, trials, metric, part }: Props) {
  const few = !part && trials < LEAST_TRIALS;
  const unjudged = list.filter((one) => one.trials < LEAST_TRIALS);
  const flat = !part && !few && unjudged.length < list.length && list.every((one) => one.score === 0);

  return (
    <section className="card" aria-label="Importance of parameters">
      <Title order={2} mb={4}>
        Importance of parameters
      </Title>
      {part && (
        <p style={{ margin: 0 }}>
          This needs all trials, and the page reads {grouped(trials)} of those with a value: the best and the newest.
          Their values are not spread as those of all are.
        </p>
      )}
      {few && (
        <p style={{ margin: 0 }}>
          This needs {LEAST_TRIALS} trials with a value; there {trials === 1 ? "is" : "are"} {trials}. With fewer,
          chance decides.
        </p>
      )}
      {flat && (
        <p style={{ margin: 0 }}>
          The best quarter of {count(trials, "trial")} has about the same values as all:{" "}
          {unjudged.length === 0
            ? "no parameter stands out."
            : `of those that at least ${LEAST_TRIALS} trials have, no parameter stands out. Too few have ${unjudged.map((one) => one.name).join(", ")}.`}
        </p>
      )}
      {!part && !few && !flat && (
        <>
          <div className="chartnote">
            How far the values of the best quarter of {count(trials, "trial")} by {metric} differ from those of all, as
            a share of all differences. A parameter that only some trials have is judged among those. It says where the
            best are, not why. Method: PED-ANOVA (Watanabe et al., 2023) with groups of values.
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
              {list.map((one) => (
                <tr key={one.name}>
                  <td>{one.name}</td>
                  <td className="num right">{one.trials < LEAST_TRIALS ? "too few trials" : percent(one.share)}</td>
                  <td aria-hidden="true">
                    <div
                      style={{ width: `${100 * one.share}%`, height: 12, borderRadius: 2, background: "var(--run)" }}
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
