import { describe, expect, it } from "vitest";
import { parseSweepSearch, parseSweepsSearch } from "@/routes/search";

describe("addresses", () => {
  it("of the list: keep what is known, and read a name of digits", () => {
    expect(parseSweepsSearch({ state: "failed,odd", name: 12, by: "", sort: "-name", more: 1 })).toEqual({
      state: ["failed"],
      name: "12",
      sort: "-name",
    });
  });

  it("of a sweep: sorts of the server and a range of values", () => {
    expect(parseSweepSearch({ tab: "report", sort: "-value", min: "0.5", max: "x" })).toEqual({
      tab: "report",
      sort: "-value",
      min: 0.5,
    });
    expect(parseSweepSearch({ trials: 7, tab: "overview" })).toEqual({ tab: "overview", trials: "7" });
    expect(parseSweepSearch({ sort: "best" })).toEqual({});
  });
});
