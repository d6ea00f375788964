import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { FootprintCard } from "@/components/FootprintCard";
import { gpuOf, margin } from "@/lib/probes";
import { draw } from "@/test/draw";
import { device } from "@/test/factories/host";
import { coresFootprint, footprint, raisedFootprint } from "@/test/factories/probe";

const MiB = 1024 ** 2;
const h200 = device({ memory_bytes: 143_771 * MiB, default_mode_bytes: 141_450 * MiB });
const section = () => screen.getByRole("region", { name: "GPU memory" });
const bars = () =>
  within(section())
    .getAllByRole("listitem")
    .map((item) => ({
      text: item.textContent,
      width: item.querySelectorAll("rect")[1]?.getAttribute("width"),
      measured: item.querySelectorAll("rect")[1]?.getAttribute("stroke-dasharray") === null,
    }));
const fact = (name: string) => screen.getByText(name, { selector: "dt" }).nextElementSibling?.textContent;

it("sets the measured peak and its reservation beside the default mode, on the scale of the card", async () => {
  await draw(<FootprintCard footprint={footprint()} gpus={[h200]} />);
  expect(bars()).toEqual([
    { text: "TensorFlow's default mode: 138.1 GiB (98 %)", width: `${(99.8 * 141_450) / 143_771}%`, measured: false },
    { text: "Next attempt reserves: 1,088 MiB (0.8 %)", width: `${(99.8 * 1088) / 143_771}%`, measured: false },
    { text: "Peak: 910 MiB (0.6 %), measured", width: `${(99.8 * 910) / 143_771}%`, measured: true },
  ]);
  expect(section().textContent).toMatch(
    /an estimate for a card of this size.*not run here.*TF_FORCE_GPU_ALLOW_GROWTH=true/,
  );
  expect(fact("GPU, next attempt reserves")).toBe("1,088 MiB");
  expect(fact("GPU, margin over the peak")).toBe("178 MiB (20 %)");
});

it("estimates nothing for a card that is not there", async () => {
  await draw(<FootprintCard footprint={footprint()} gpus={[device({ class: "NVIDIA L4" })]} />);
  expect(bars().map((bar) => bar.text)).toEqual(["Next attempt reserves: 1,088 MiB", "Peak: 910 MiB, measured"]);
  expect(section().textContent).toContain("No GPU of this kind is there now");
});

it("says nothing of cards while they are not read", async () => {
  await draw(<FootprintCard footprint={footprint()} gpus={undefined} />);
  expect(bars()).toHaveLength(2);
  expect(section().textContent).not.toMatch(/No GPU|estimate/);
});

it("does not take for measured what was raised after an out-of-memory", async () => {
  await draw(<FootprintCard footprint={raisedFootprint()} gpus={[h200]} />);
  expect(bars().map((bar) => bar.measured)).toEqual([false, false]);
  expect(section().textContent).toContain("Its peak was not measured.");
  expect(fact("Peak")).toBe("not measured");
  expect(fact("Margin over the peak")).toBe("–");
  expect(fact("Next attempt reserves")).toBe("not known");
  expect(fact("Duration, mean")).toBe("not measured");
  expect(fact("Cores used, mean")).toBe("not measured");
  expect(screen.queryByText("GPU, margin over the peak")).toBeNull();
});

it("has no GPU for cores", async () => {
  await draw(<FootprintCard footprint={coresFootprint()} gpus={[h200]} />);
  expect(screen.queryByRole("region", { name: "GPU memory" })).toBeNull();
});

it("finds the card of a footprint however it is shared now, not another", () => {
  expect(gpuOf(footprint(), [device({ class: "NVIDIA H200 1g.18gb" }), h200])).toBe(h200);
  expect(gpuOf(footprint({ device_class: "NVIDIA H200" }), [device({ class: "NVIDIA H200 (MPS)" })])).toBeTruthy();
  expect(margin(110, 100)).toContain("(10 %)");
});
