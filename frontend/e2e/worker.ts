import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "./watched";

/** Worker is a machine beside that of `berth dev`; a signal ends or stops it before the file is done. */
export interface Worker {
  signal: (name: NodeJS.Signals) => void;
}

/** aWorker runs a worker by the name of its machine, with these flags, while the tests of a file run. */
export function aWorker(host: string, flags: Record<string, string>): Worker {
  const worker: Worker = { signal: () => undefined };
  let dir = "";
  test.beforeAll(() => {
    const [database = "", temporal = ""] = readFileSync(join(process.env.BERTH_DATA ?? "", "backends"), "utf8").split(
      "\n",
    );
    dir = mkdtempSync(join(tmpdir(), "berth-worker."));
    const log = openSync(join(dir, "worker.log"), "a");
    const all = {
      "postgres-url": database,
      "temporal-address": temporal,
      "data-dir": dir,
      "machine-id": host,
      "host-name": host,
      instance: host,
      cpus: "1",
      ...flags,
    };
    const child = spawn(
      "../.build/berth",
      ["worker", ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
      { stdio: ["ignore", log, log] },
    );
    worker.signal = (name) => child.kill(name);
  });
  test.afterAll(() => {
    worker.signal("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  });

  return worker;
}
