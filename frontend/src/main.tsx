import "@mantine/core/styles.css";
import "@/app.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { configure } from "@/api/client";
import { newRouter } from "@/router";
import { Live } from "@/services/live";
import { newQueryClient } from "@/services/query";
import { theme, variables } from "@/theme";

configure();
const queries = newQueryClient();
const router = newRouter({ queries, live: new Live(queries) });
const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element #root");

createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
