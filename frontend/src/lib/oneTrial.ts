import { edit, literal, typed } from "@/lib/sweepFile";

/** oneTrial makes a sweep file try one assignment of its searched parameters, and nothing else. */
export function oneTrial(text: string, params: Record<string, unknown>): string {
  return edit(text, (doc) => {
    const list = doc.toJS() as { parameters?: Record<string, unknown>[] };
    const fixed = (one: Record<string, unknown>) => "value" in one || "expr" in one;
    const searched = (list.parameters ?? []).filter((one) => !fixed(one)).map((one) => String(one.name));
    const values = Object.entries(params)
      .filter(([name]) => searched.includes(name))
      .map(([name, v]) => [name, typeof v === "number" ? typed(String(v)) : typeof v === "string" ? literal(v) : v]);

    doc.set("name", `${String(doc.get("name"))} (again)`);
    doc.set("search", { algorithm: "random" });
    doc.set("enqueue", doc.createNode([Object.fromEntries(values)]));
    doc.setIn(["limits", "max_trials"], typed("1"));
  });
}
