import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: "../api/openapi.yaml",
  output: "src/api/generated",
  // What is above the path of the API is not called by the client; its types are used.
  parser: { filters: { operations: { exclude: ["GET /livez", "GET /readyz", "GET /healthz"] }, orphans: true } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
});
