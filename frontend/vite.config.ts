import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.BERTH_SERVER ?? "http://127.0.0.1:8080";

// base is relative: the server writes the path under which it serves into index.html.
export default defineConfig({
  base: "./",
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: { target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0, chunkSizeWarningLimit: 800 },
  server: { proxy: { "/api": server, "/healthz": server }, fs: { allow: [".."] } },
  test: {
    environment: "jsdom",
    setupFiles: ["src/test/setup.tsx"],
    include: ["src/**/*.test.{ts,tsx}"],
    css: false,
    testTimeout: 15_000,
  },
});
