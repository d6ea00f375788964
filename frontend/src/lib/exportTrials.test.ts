import { describe, expect, it } from "vitest";
import { readExact } from "@/lib/exact";
import { cell, csv, jsonLines } from "@/lib/exportTrials";
import type { Trial } from "@/services/trials";
import { trial } from "@/test/factories/trial";

describe("CSV", () => {
  it("keeps spreadsheets from running a text", () => {
    for (const text of ["=1+1", "+1", "-1", "@x"]) expect(cell(text)).toBe(`'${text}`);
    expect(cell(-0.5)).toBe("-0.5");
    expect(cell('=cmd|"x",y')).toBe(`"'=cmd|""x"",y"`);
    expect(cell("a\nb")).toBe('"a\nb"');
    expect(cell(undefined)).toBe("");
  });

  it("has a column for each parameter of any page", () => {
    const text = csv([[trial({ params: { lr: 0.1 } })], [trial({ number: 2, params: { opt: "adam" } })]]).join("");
    const [head, first, second] = text.split("\r\n");
    expect(head?.endsWith(",params.lr,params.opt")).toBe(true);
    expect(first).toMatch(/^1,succeeded,0.95,.*,0\.1,$/);
    expect(second).toMatch(/^2,.*,,adam$/);
  });
});

describe("JSON lines", () => {
  it("have a trial each", () => {
    const lines = jsonLines([[trial(), trial({ number: 2 })]])
      .join("")
      .trim()
      .split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { number: number }).number)).toEqual([1, 2]);
  });
});

describe("numbers that a script would change", () => {
  const params = '{"seed":9007199254740993,"rate":1.0,"small":1e-05,"text":"1.0","list":[2.50,-3.0],"n":-7}';
  const page = [readExact(JSON.stringify(trial()).replace(/"params":\{[^}]*\}/, `"params":${params}`)) as Trial];

  it("are in JSON lines as the API gives them", () => {
    expect(jsonLines([page]).join("")).toContain(`"params":${params}`);
  });

  it("are in CSV as the API gives them", () => {
    expect(csv([page]).join("")).toContain(',9007199254740993,1.0,1e-05,1.0,"[2.50,-3.0]",-7\r\n');
  });
});
