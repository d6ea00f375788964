import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { ApiError, toApiError } from "@/api/errors";
import { ErrorNote } from "@/components/ErrorNote";
import { LiveBadge } from "@/components/LiveBadge";
import { Loading } from "@/components/Loading";
import { LogIn } from "@/components/LogIn";
import { PreviewPanel } from "@/components/PreviewPanel";
import { ProblemList } from "@/components/ProblemList";
import { Report } from "@/components/Report";
import { SweepTable } from "@/components/SweepTable";
import { controlsOf } from "@/lib/controls";
import { progressText, segments } from "@/lib/progress";
import { sweepStates } from "@/lib/states";
import { draw } from "@/test/draw";
import { emptyReport, endedSweep, newSweep, preview, previewHost, report, sweep } from "@/test/factories/sweep";

const none = new Set<string>();
const now = Date.parse("2026-01-01T00:05:05Z");

describe("SweepTable", () => {
  it("shows a running sweep: state in words, progress, best value, duration", async () => {
    await draw(
      <SweepTable
        sweeps={[sweep()]}
        now={now}
        sort="-created_at"
        onSort={vi.fn()}
        chosen={none}
        onToggle={vi.fn()}
        remaining={() => null}
      />,
    );
    const table = screen.getByRole("table", { name: "Sweeps" });
    expect(within(table).getByText("Running")).toBeTruthy();
    expect(within(table).getByText("0.9876")).toBeTruthy();
    expect(within(table).getByText("5 min")).toBeTruthy();
    expect(within(table).getByRole("img", { name: "digits: 3 of 24 succeeded, 3 running" })).toBeTruthy();
  });

  it("asks for another order, and for the same one turned", async () => {
    const sort = vi.fn();
    await draw(
      <SweepTable
        sweeps={[sweep()]}
        now={now}
        sort="-created_at"
        onSort={sort}
        chosen={none}
        onToggle={vi.fn()}
        remaining={() => null}
      />,
    );
    await userEvent.click(screen.getByRole("button", { name: "Name" }));
    expect(sort).toHaveBeenCalledWith("name");
    await userEvent.click(screen.getByRole("button", { name: "Created" }));
    expect(sort).toHaveBeenCalledWith("created_at");
  });

  it("names every state", async () => {
    await draw(
      <SweepTable
        sweeps={sweepStates.map((state, i) => sweep({ id: `s${i}`, state }))}
        now={now}
        sort="-created_at"
        onSort={vi.fn()}
        chosen={none}
        onToggle={vi.fn()}
        remaining={() => null}
      />,
    );
    for (const text of ["Starting", "Paused", "Stopping", "Canceling", "Succeeded", "Failed", "Stopped", "Canceled"]) {
      expect(screen.getByText(text)).toBeTruthy();
    }
  });
});

describe("progress", () => {
  it("adds up to the planned trials", () => {
    const all = segments(endedSweep("stopped").counts);
    expect(all.reduce((sum, one) => sum + one.count, 0)).toBe(24);
    expect(progressText(endedSweep("stopped").counts)).toBe("20 of 24 succeeded, 3 failed, 1 canceled");
    expect(progressText(newSweep().counts)).toBe("no trials yet");
  });
});

describe("an ended sweep", () => {
  it("has no part that waits", () => {
    const { counts } = endedSweep("stopped", { counts: { ...endedSweep("stopped").counts, succeeded: 10 } });
    expect(segments(counts, true).map((one) => one.name)).not.toContain("waiting");
    expect(progressText(counts, true)).toBe("10 of 24 succeeded, 3 failed, 1 canceled, 10 not run");
  });
});

describe("controlsOf", () => {
  it.each([
    ["running", ["pause", "stop", "parallel", "cancel", "clone"]],
    ["paused", ["resume", "stop", "parallel", "cancel", "clone"]],
    ["stopping", ["cancel", "clone"]],
    ["canceling", ["clone"]],
    ["failed", ["clone", "rerun", "delete"]],
  ] as const)("of a %s sweep", (state, controls) => {
    const ended = state === "failed";
    expect(controlsOf(ended ? endedSweep(state) : sweep({ state }))).toEqual(controls);
  });

  it("offers no rerun when nothing failed", () =>
    expect(controlsOf(endedSweep("succeeded", { counts: { ...newSweep().counts, succeeded: 5 } }))).toEqual([
      "clone",
      "delete",
    ]));
});

describe("Report", () => {
  it("says what packing saved", async () => {
    await draw(<Report report={report()} />);
    expect(screen.getByText("6 min 40 s")).toBeTruthy();
    expect(screen.getByText("4 times the work in that time")).toBeTruthy();
    expect(screen.getByText(/No attempt was lost/)).toBeTruthy();
  });

  it("lists losses by cause, out of memory too", async () => {
    await draw(<Report report={report({ losses: [{ cause: "host_oom", attempts: 3, repeated: 3, seconds: 30 }] })} />);
    expect(screen.getByText("Out of memory on its machine")).toBeTruthy();
  });

  const cores = report().cores;

  it("of trials that were not packed claims no gain, and tells what is charged beside other sweeps", async () => {
    const one = { ...cores, used_seconds: 3600, charged_seconds: 900, alone_seconds: 3600, max_at_once: 1 };
    await draw(<Report report={report({ cores: one })} />);
    const facts = within(screen.getByRole("region", { name: "Cores of machines" })).getAllByRole("term");
    expect(facts.slice(0, 3).map((fact) => `${fact.textContent}: ${fact.nextElementSibling?.textContent}`)).toEqual([
      "Machine time in use: 1 h",
      "Charged, beside other sweeps: 15 min",
      "Trials at once on one machine: 4.8 on average, 1 at most",
    ]);
  });

  it("compares nothing where one trial at a time would need none of the attempts", async () => {
    await draw(<Report report={report({ cores: { ...cores, alone_seconds: 0 } })} />);
    expect(screen.queryByText(/One trial at a time|times the work/)).toBeNull();
  });

  it.each([
    [{ ended: false }, "No attempt has been lost so far."],
    [{ missing_trials: 20 }, undefined],
    [{}, "No attempt was lost: each gave a result."],
  ])("says of losses what is known: %j", async (change, says) => {
    await draw(<Report report={report(change)} />);
    expect(screen.queryByText(/^No attempt/)?.textContent).toBe(says);
  });

  it("has a word for a sweep without attempts", async () => {
    await draw(<Report report={emptyReport()} />);
    expect(screen.getByText(/No attempt has started yet/)).toBeTruthy();
  });
});

describe("PreviewPanel", () => {
  it("says how many at once, on which machine and why no more", async () => {
    await draw(<PreviewPanel preview={preview()} old={false} />);
    expect(screen.getByText("memory of box is used up first")).toBeTruthy();
    expect(screen.getByText("known after the first probe")).toBeTruthy();
  });

  it("shows warnings", async () => {
    await draw(
      <PreviewPanel
        preview={preview({ at_once: 0, warnings: [{ code: "W", pointer: "/image", detail: "No such image." }] })}
        old
      />,
    );
    expect(screen.getByText("No such image.")).toBeTruthy();
    expect(screen.getByText("none")).toBeTruthy();
  });
});

describe("how full machines get", () => {
  const bar = (name: RegExp) => screen.getByRole("img", { name }).getAttribute("aria-label");

  it("tells the sweep from what is held now, on the machine and on its GPU", async () => {
    await draw(<PreviewPanel preview={preview({ hosts: [previewHost()] })} old={false} />);
    expect(bar(/^Machine memory/)).toBe(
      "Machine memory of box, 64 GiB: 8,192 MiB held now (13 %), 8,192 MiB this sweep (13 %), 1,024 MiB used by others (1.6 %), 3,072 MiB headroom (4.7 %), 44 GiB free (69 %)",
    );
    expect(bar(/^GPU 1/)).toBe(
      "GPU 1: Simulated GPU 24 GiB (no real card) of box, 24 GiB: 12 GiB this sweep (50 %), 1,024 MiB headroom (4.2 %), 11 GiB free (46 %)",
    );
    expect(screen.getByText(/6 trials at once when nothing else runs, 4 beside what runs now\./)).toBeTruthy();
    // The one machine's reason equals the sweep's, which is shown above.
    expect(screen.queryByText(/GPU memory binds/)).toBeNull();
  });

  it("says why a GPU takes no trials", async () => {
    const [gpu] = previewHost().devices ?? [];
    const hosts = [previewHost({ devices: gpu && [{ ...gpu, problem: "its MPS daemon is started again" }] })];
    await draw(<PreviewPanel preview={preview({ hosts })} old={false} />);
    expect(screen.getByText("It takes no trials. Its MPS daemon is started again.")).toBeTruthy();
  });

  it("names what binds on each of several, and what GPUs cannot hold", async () => {
    const hosts = [
      previewHost({ at_once_now: 6 }),
      previewHost({ id: "i", name: "full", at_once: 0, at_once_now: 0, why: "no GPU there", devices: [] }),
      previewHost({ id: "j", name: "big", at_once: 1, at_once_now: 0, spill_bytes: 1024 ** 3 }),
    ];
    await draw(<PreviewPanel preview={preview({ hosts })} old={false} />);
    const items = within(screen.getByRole("region", { name: "How full each machine gets" })).getAllByRole("listitem");
    const said = items.map((item) => item.querySelector("strong")?.parentElement?.textContent).filter(Boolean);
    expect(said).toEqual([
      "box: 6 trials at once. GPU memory binds (24 GiB, 3 GiB each); CPU would hold 16.",
      "full: no trial at once. No GPU there.",
      "big: 1 trial at once when nothing else runs, none beside what runs now. GPU memory binds (24 GiB, 3 GiB each); CPU would hold 16.",
    ]);
    expect(screen.getByText(/^1,024 MiB of it is for what GPUs cannot hold/)).toBeTruthy();
  });

  it("draws no bar of figures that a server does not give, and folds many machines", async () => {
    const hosts = Array.from({ length: 6 }, (_, i) => ({
      id: `h${i}`,
      name: `box${i}`,
      at_once: 1,
      binds: "cpu",
      why: "",
    }));
    await draw(<PreviewPanel preview={preview({ hosts })} old={false} />);
    expect(screen.queryByRole("img")).toBeNull();
    expect(screen.getByText("2 further machines")).toBeTruthy();
  });

  it("says nothing of machines when there is none", async () => {
    await draw(<PreviewPanel preview={preview({ hosts: [] })} old={false} />);
    expect(screen.queryByRole("region", { name: "How full each machine gets" })).toBeNull();
  });
});

describe("messages", () => {
  it("say what is read", async () => {
    await draw(<Loading what="sweeps" />);
    expect(screen.getByRole("status").textContent).toBe("Reading sweeps…");
  });

  it("name each problem and the request", async () => {
    const retry = vi.fn();
    const error = new ApiError(422, {
      detail: "Refused.",
      request_id: "r1",
      errors: [{ code: "E_NAME", pointer: "/name", detail: "too long" }],
    });
    await draw(<ErrorNote error={error} doing="Launching" onRetry={retry} />);
    expect(screen.getByRole("alert").textContent).toContain("Launching failed. Refused.");
    expect(screen.getByText("/name")).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(retry).toHaveBeenCalledOnce();
  });

  it("explain a silent server and a proxy", () => {
    expect(toApiError(0, undefined).message).toContain("does not answer");
    expect(toApiError(502, "<html>").message).toContain("proxy");
  });

  it("list problems by line", async () => {
    await draw(
      <ProblemList
        problems={[{ code: "E_NAME", pointer: "/name", detail: "too long", line: 3 }]}
        warnings={[]}
        settling={false}
      />,
    );
    expect(screen.getByText(/Line 3: too long/)).toBeTruthy();
  });
});

describe("LiveBadge", () => {
  it.each(["live", "reconnecting", "paused", "connecting"] as const)("says %s in text", async (state) => {
    await draw(<LiveBadge state={state} onToggle={vi.fn()} />);
    expect(screen.getByRole("status").textContent.toLowerCase()).toBe(state);
  });
});

describe("LogIn", () => {
  it("says why a token was refused, and takes another", async () => {
    const logIn = vi.fn().mockRejectedValueOnce(new ApiError(401, { detail: "The token is not valid" }));
    await draw(<LogIn wasKnown onLogIn={logIn} />);
    expect(screen.getByText(/session has ended/)).toBeTruthy();
    expect(document.activeElement).toBe(screen.getByLabelText("Token"));
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(screen.getByText(/Enter a token/)).toBeTruthy();
    await userEvent.type(screen.getByLabelText("Token"), " berth_x ");
    await userEvent.click(screen.getByRole("button", { name: "Log in" }));
    expect(logIn).toHaveBeenCalledWith("berth_x");
    expect(await screen.findByText("The token is not valid")).toBeTruthy();
  });
});
