import { screen, within } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { drawApp } from "@/test/app";
import { probe, raisedFootprint } from "@/test/factories/probe";

afterEach(() => vi.unstubAllGlobals());

it("gives no duration and no reservation of a shape that no attempt has measured", async () => {
  await drawApp("/probes", { "GET /probes": [200, { data: [probe({ footprints: [raisedFootprint()] })] }] });
  const table = await screen.findByRole("table");
  const heads = within(table).getAllByRole("columnheader").map((one) => one.textContent); // prettier-ignore
  const cells = within(within(table).getAllByRole("row")[1] as HTMLElement).getAllByRole("cell");
  const at = (head: string) => cells[heads.indexOf(head)]?.textContent;
  expect([at("Duration"), at("Next reserves"), at("Attempts")]).toEqual(["–", "–", "0"]);
});
