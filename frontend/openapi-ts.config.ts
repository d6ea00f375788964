import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: "../api/openapi.yaml",
  output: "src/api/generated",
  // The client does not call routes above the API's path; it uses their types.
  parser: { filters: { operations: { exclude: ["GET /livez", "GET /readyz", "GET /healthz"] }, orphans: true } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
});
