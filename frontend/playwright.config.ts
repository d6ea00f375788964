import { execFileSync } from "node:child_process";
import { defineConfig } from "@playwright/test";

/** The browser that the machine has; scripts/test-web installs one where it may. */
function chromium(): string {
  if (process.env.CHROMIUM !== undefined) return process.env.CHROMIUM;

  return execFileSync("sh", ["-c", "command -v chromium || command -v chromium-browser || command -v google-chrome"], {
    encoding: "utf8",
  }).trim();
}

// scripts/test-web starts the real server on an empty system and sets BERTH_SERVER.
export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  workers: 1, // one server, whose sweeps share its machine
  fullyParallel: false,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [["list"]],
  use: {
    baseURL: process.env.BERTH_SERVER ?? "http://127.0.0.1:8080",
    browserName: "chromium",
    screenshot: "only-on-failure",
    launchOptions: {
      executablePath: chromium(),
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
