import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { Attempts } from "@/components/Attempts";
import { HostCard } from "@/components/HostCard";
import { LogView } from "@/components/LogView";
import { TrialTable } from "@/components/TrialTable";
import { amount, Waiting } from "@/components/Waiting";
import { series, table } from "@/lib/metrics";
import { deviceParts, hostParts, packingText, parts } from "@/lib/packing";
import { bestFirst, matching, ordered, parameterNames, trialNote, turned } from "@/lib/trials";
import type { LogPiece } from "@/services/log";
import { draw } from "@/test/draw";
import { advisedDevice, cordonedDevice, host, keptHost, sickDevice, simulatedDevice } from "@/test/factories/host";
import {
  attempt,
  brokenTrial,
  failedTrial,
  infeasibleTrial,
  outOfMemoryAttempt,
  rejection,
  runningAttempt,
  runningTrial,
  trial,
  waitingTrial,
} from "@/test/factories/trial";

const names = new Map([["h1", "box"]]);
const nothing = vi.fn();
const none = new Set<number>();
const now = Date.parse("2026-01-01T00:01:00Z");
const objective = { metric: "val", goal: "maximize" as const };

describe("TrialTable", () => {
  it("shows every parameter and why a trial failed or waits", async () => {
    const rows = [
      trial(),
      { ...failedTrial(), number: 2 },
      { ...waitingTrial(), number: 3 },
      { ...infeasibleTrial(), number: 4, params: { extra: true } },
    ];
    await draw(
      <TrialTable
        sweepId="s"
        trials={rows}
        now={now}
        sort="number"
        objective={objective}
        best={1}
        onSort={nothing}
        chosen={none}
        onToggle={nothing}
        names={["lr", "optimizer", "batch", "extra"]}
        metrics={[]}
      />,
    );
    for (const name of ["lr", "optimizer", "batch", "extra"])
      expect(screen.getByRole("columnheader", { name })).toBeTruthy();
    expect(screen.getByText("1 (best)")).toBeTruthy();
    expect(screen.getByText(/exit code 3/)).toBeTruthy();
    expect(screen.getByText(/too little memory free/)).toBeTruthy();
    expect(screen.getByText("Needs too much memory")).toBeTruthy();
  });

  it("says where the newest attempt is, what it uses, its last metric, and since when one waits", async () => {
    const latest = runningTrial().latest_attempt;
    const rows = [
      runningTrial(),
      { ...waitingTrial(), number: 3, waiting_since: "2026-01-01T00:00:00Z" },
      {
        ...runningTrial(),
        number: 4,
        latest_attempt: latest && { ...latest, stage: "features", last_metric: undefined },
      },
    ];
    await draw(
      <TrialTable
        sweepId="s"
        trials={rows}
        now={now}
        sort="number"
        objective={objective}
        best={1}
        onSort={nothing}
        chosen={none}
        onToggle={nothing}
        names={[]}
        metrics={[]}
      />,
    );
    expect(screen.getByText("box, GPU-1")).toBeTruthy();
    expect(screen.getByText("box, GPU-1, stage features")).toBeTruthy();
    expect(screen.getAllByText("GPU 2,048 MiB, peak 1,500 MiB")).toHaveLength(2);
    expect(screen.getByText("0.8 at step 3")).toBeTruthy();
    expect(screen.getByText(/since 1 min ago: box has too little/)).toBeTruthy();
  });

  it("shows the results of a trial that breaks a constraint, and which", async () => {
    const latest = runningTrial().latest_attempt;
    const metrics = [{ name: "ms", step: 7, value: 12, status: "finite" as const, at: "2026-01-01T00:00:00Z" }];
    const rows = [
      brokenTrial(),
      trial({ number: 2, value: 0.9, results: { acc: 0.9, ms: 15 }, latest_attempt: latest && { ...latest, metrics } }),
      { ...runningTrial(), number: 3, latest_attempt: latest && { ...latest, metrics } },
    ];
    await draw(
      <TrialTable
        sweepId="s"
        trials={rows}
        now={now}
        sort="number"
        objective={{ metric: "acc", goal: "maximize" }}
        best={2}
        onSort={nothing}
        chosen={none}
        onToggle={nothing}
        names={[]}
        metrics={["ms"]}
      />,
    );
    const cells = screen.getAllByRole("row").slice(1, 4).map((row) => [...row.children].map((cell) => cell.textContent)); // prettier-ignore
    expect(cells.map((row) => row.slice(3, 5))).toEqual([
      ["–0.97 breaks a constraint", "30"],
      ["0.9", "15"], // a result, not the newest point
      ["–0.8 at step 3", "12"],
    ]);
    expect(cells[0]?.at(-1)).toContain("its ms of 30 is more than 20");
    expect(cells[1]?.at(-1)).toBe("");
  });

  it("asks for the order by value", async () => {
    const sort = vi.fn();
    await draw(
      <TrialTable
        sweepId="s"
        trials={[trial()]}
        now={now}
        sort="number"
        objective={objective}
        best={1}
        onSort={sort}
        chosen={none}
        onToggle={nothing}
        names={[]}
        metrics={[]}
      />,
    );
    await userEvent.click(screen.getByRole("button", { name: /val/ }));
    expect(sort).toHaveBeenCalledWith("-value");
  });
});

describe("order", () => {
  it("is the best first, and turns with a second press", () => {
    expect(bestFirst("minimize")).toBe("value");
    expect(bestFirst("maximize")).toBe("-value");
    expect(turned("number", "-value")).toBe("-value");
    expect(turned("-value", "-value")).toBe("value");
    expect(turned("value", "value")).toBe("-value");
    expect(ordered("-value", "value")).toBe("descending");
    expect(ordered("number", "value")).toBe("none");
  });

  it("knows names, notes and totals", () => {
    expect(parameterNames([trial(), failedTrial()])).toEqual(["lr", "optimizer", "batch"]);
    expect(trialNote(trial({ message: "finished" }))).toBe("");
    expect(trialNote(brokenTrial())).toContain("its ms of 30 is more than 20");
    expect(matching(1, 100, "trial")).toBe("1 trial");
    expect(matching(100, 100, "trial")).toBe("100 trials or more");
  });
});

describe("Waiting", () => {
  it("says needed and free in the unit of the dimension", async () => {
    await draw(
      <Waiting
        rejections={[rejection(), rejection({ host_id: "h2", dimension: "cpu", needed: 1500, free: 0, never: true })]}
      />,
    );
    expect(screen.getByText("910 MiB")).toBeTruthy();
    expect(screen.getByText("1.5 cores")).toBeTruthy();
    expect(screen.getByText(/even when the candidate is empty/)).toBeTruthy();
    expect(amount("contexts", 3)).toBe("3");
    expect(screen.queryByText(/is kept free/)).toBeNull();
  });

  it("says which host is kept free for it", async () => {
    await draw(<Waiting rejections={[rejection()]} kept={keptHost()} />);
    expect(screen.getByRole("status").textContent).toMatch(/^Host box is kept free for it since /);
  });
});

describe("Attempts", () => {
  it("draws the peak against the reservation", async () => {
    await draw(<Attempts attempts={[attempt()]} chosen="a1" hostNames={names} onChoose={nothing} />);
    expect(screen.getByRole("img", { name: "Machine memory: peak 800 MiB of 1,000 MiB reserved (80 %)" })).toBeTruthy();
    expect(screen.getByText("Finished")).toBeTruthy();
  });

  it("tells out of memory from other ends, and one that runs", async () => {
    const list = [outOfMemoryAttempt(), { ...runningAttempt(), id: "a2", number: 2 }];
    await draw(<Attempts attempts={list} chosen="a2" hostNames={names} onChoose={nothing} />);
    expect(screen.getByText("Out of memory on its machine")).toBeTruthy();
    expect(screen.getByText(/runs again with 1,500 MiB/)).toBeTruthy();
    expect(screen.getByText("Running")).toBeTruthy();
    expect(screen.getByRole("img", { name: /peak told at its end/ })).toBeTruthy();
  });
});

describe("Attempts, in words", () => {
  it("say that a probe measures, and why an attempt was given up", async () => {
    const list = [
      attempt({ purpose: "probe" }),
      attempt({ id: "a2", number: 2, state: "abandoned", failure_kind: "infra" }),
      attempt({ id: "a3", number: 3, state: "abandoned", failure_kind: undefined }),
    ];
    await draw(<Attempts attempts={list} chosen="a1" hostNames={names} onChoose={nothing} />);
    expect(screen.getByText(/measures its shape/)).toBeTruthy();
    expect(screen.getByText("Given up: the machine, Docker or Berth failed")).toBeTruthy();
    expect(screen.getByText("Given up")).toBeTruthy();
  });
});

describe("HostCard", () => {
  const card = (one: ReturnType<typeof host>) => (
    <HostCard host={one} leases={[]} now={Date.parse("2026-01-01T00:01:00Z")} onHost={nothing} onDevice={nothing} />
  );

  it("says reserved, used by others, headroom and free", async () => {
    expect(packingText(64 * 1024 ** 3, hostParts(host()))).toBe(
      "64 GiB: 10 GiB reserved (16 %), 2,048 MiB used by others (3.1 %), 2,048 MiB headroom (3.1 %), 50 GiB free (78 %)",
    );
    await draw(card(host()));
    expect(screen.getByRole("img", { name: /^Memory of box, 64 GiB/ })).toBeTruthy();
  });

  it("adds up to the whole, also when others use more than the headroom", () => {
    for (const [reserved, headroom, used] of [
      [10, 4, 34],
      [60, 4, 34],
      [0, 4, 0],
      [64, 0, 0],
    ] as const) {
      expect(parts(64, reserved, headroom, used).reduce((sum, part) => sum + (part.drawn ?? part.bytes), 0)).toBe(64);
    }
    expect(parts(64, 10, 4, 34)).toEqual([
      { name: "reserved", bytes: 10 },
      { name: "used by others", bytes: 34 },
      { name: "free", bytes: 20 },
    ]);
  });

  it("says all that others use, also where it is more than is not reserved", () => {
    const GiB = 1024 ** 3;
    const full = host({ memory_reserved_bytes: 60 * GiB, memory_free_bytes: 44 * GiB, used_by_others_bytes: 20 * GiB });
    expect(hostParts(full)[1]).toEqual({ name: "used by others", bytes: 20 * GiB, drawn: 4 * GiB });
    expect(packingText(full.memory_bytes, hostParts(full))).toContain("20 GiB used by others");
  });

  it("says of no GPU with a problem that others use all of it, nor that it is free", () => {
    const names = deviceParts({ ...sickDevice(), free_bytes: 0 }).map((part) => part.name);
    expect(names).toEqual(["reserved", "headroom"]);
  });

  it("shows problems of machine and GPUs, cordons, advice, and what is simulated", async () => {
    await draw(
      card(
        host({
          state: "unready",
          problem: "Docker does not answer.",
          devices: [
            { ...simulatedDevice(), id: "GPU-fake-0" },
            { ...cordonedDevice(), id: "b" },
            { ...sickDevice(), id: "c" },
            { ...advisedDevice(), id: "d" },
          ],
        }),
      ),
    );
    expect(screen.getByText("Docker does not answer.")).toBeTruthy();
    expect(screen.getByText(/no real card/)).toBeTruthy();
    expect(screen.getByText(/ECC errors/)).toBeTruthy();
    expect(screen.getByText(/Xid 79/)).toBeTruthy();
    expect(screen.getByText(/Advice: MPS, 24 at once and no more/)).toBeTruthy();
  });
});

describe("a machine", () => {
  const cordoned = host({ cordoned_at: "2026-01-01T00:00:00Z", cordon_reason: "3 trials failed to start." });
  const show = (readOnly: boolean) =>
    draw(
      <HostCard
        host={{ ...cordoned, devices: [cordonedDevice()] }}
        leases={[]}
        now={0}
        readOnly={readOnly}
        onHost={nothing}
        onDevice={nothing}
      />,
    );

  it("that is cordoned says so and can be made ready", async () => {
    await show(false);
    expect(screen.getByText("Cordoned: takes only test attempts")).toBeTruthy();
    expect(screen.getByRole("button", { name: "Make ready box" })).toBeTruthy();
  });

  it("has no buttons for a viewer", async () => {
    await show(true);
    expect(screen.queryByRole("button")).toBeNull();
  });
});

describe("LogView", () => {
  const log = {
    pieces: [],
    start: 0,
    shown: 0,
    more: false,
    problem: "",
    readMore: vi.fn(),
    toEnd: vi.fn(),
    toStart: vi.fn(),
    onDownload: vi.fn(),
  };

  it("writes a small size in KiB, and offers the end of a long log", async () => {
    const toEnd = vi.fn();
    await draw(<LogView {...log} shown={3 * 1024} state="idle" more toEnd={toEnd} />);
    expect(screen.getByText("3 KiB shown, more follows")).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Go to the end" }));
    expect(toEnd).toHaveBeenCalledOnce();
  });

  it("says when there is nothing", async () => {
    await draw(<LogView {...log} state="complete" />);
    expect(screen.getByText("It wrote nothing.")).toBeTruthy();
  });

  it("says how much is shown and shows more on demand", async () => {
    const readMore = vi.fn();
    const piece: LogPiece = { offset: 0, length: 5, stream: "stderr", at: "", text: "hello" };
    await draw(<LogView {...log} pieces={[piece]} shown={1024 * 1024} more state="idle" readMore={readMore} />);
    expect(screen.getByText("1 MiB shown, more follows")).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Show the next MiB" }));
    expect(readMore).toHaveBeenCalledOnce();
  });

  it("gives the focus of a button that vanished with the answer to the log", async () => {
    const piece: LogPiece = { offset: 0, length: 5, stream: "stderr", at: "", text: "hello" };
    function Page() {
      const [state, setState] = useState<"failed" | "reading" | "complete">("failed");

      return (
        <>
          <button type="button" onClick={() => setState("complete")}>
            Answer
          </button>
          <LogView
            {...log}
            pieces={[piece]}
            state={state}
            problem={state === "complete" ? "" : "No answer."}
            readMore={() => setState("reading")}
          />
        </>
      );
    }
    await draw(<Page />);
    const again = screen.getByRole("button", { name: "Try again" });
    await userEvent.click(again);
    expect(document.activeElement).toBe(again);
    fireEvent.click(screen.getByText("Answer"));
    expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
    expect(document.activeElement).toBe(screen.getByLabelText("Output of the attempt"));
  });

  it("says that it is paused, and how to go on", async () => {
    await draw(<LogView {...log} state="paused" />);
    expect(screen.getByRole("status").textContent).toMatch(/paused .*resume live updates/);
    expect(screen.getByText("It has written nothing yet.")).toBeTruthy();
  });

  it("says why a log failed to come", async () => {
    await draw(<LogView {...log} state="failed" problem="The stream was refused." />);
    expect(screen.getByText(/The stream was refused/)).toBeTruthy();
  });
});

describe("metrics", () => {
  const at = { at: "", final: false };

  it("are lines, with gaps where a value is not finite", () => {
    const lines = series([
      { name: "loss", step: 1, value: 0.5, status: "finite", ...at },
      { name: "loss", step: 2, status: "nan", ...at },
      { name: "acc", step: 2, value: 0.9, status: "finite", ...at },
    ]);
    expect(lines[0]).toEqual({ name: "loss", steps: [1, 2], values: [0.5, null] });
    expect(table(lines)).toEqual([
      { step: 1, values: [0.5, undefined] },
      { step: 2, values: [null, 0.9] },
    ]);
  });
});
