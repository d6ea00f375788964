import { describe, expect, it } from "vitest";
import { specLines } from "@/lib/compare";

describe("specLines", () => {
  const lines = specLines([
    { name: "a", command: ["x", "y"], parameters: [{ name: "lr", min: 1 }, { name: "opt", values: ["p"] }] },
    { name: "b", command: ["x", "y"], parameters: [{ name: "opt", values: ["p", "q"] }] },
  ]); // prettier-ignore

  it("tells parameters by their name, and marks what differs", () => {
    expect(lines.filter((line) => line.differs).map((line) => [line.path, ...line.values])).toEqual([
      ["name", "a", "b"],
      ["parameters[lr]", "min: 1", "–"],
      ["parameters[opt]", "values: p", "values: p, q"],
    ]);
    expect(lines.find((line) => line.path === "command")).toEqual({
      path: "command",
      values: ["x, y", "x, y"],
      differs: false,
    });
  });

  it.each([
    [{ p: { values: [1, 2] } }, { p: { values: ["1", "2"] } }, ["[1,2]", '["1","2"]']],
    [{ p: true }, { p: "true" }, ["true", '"true"']],
    [{ p: ["sh", "-c", "a, b"] }, { p: ["sh", "-c", "a", "b"] }, ['["sh","-c","a, b"]', '["sh","-c","a","b"]']],
    [{ p: [] }, {}, ["[]", "–"]],
    [{ p: {} }, {}, ["{}", "–"]],
    [{ p: null }, { p: "null" }, ["null", '"null"']],
  ])("tells %j from %j", (a, b, values) => {
    expect(specLines([a, b]).filter((line) => line.differs).map((line) => line.values)).toEqual([values]); // prettier-ignore
  });
});
