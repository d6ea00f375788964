import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { readConfig } from "@/api/config";
import { ErrorPage, NotFoundPage } from "@/routes/errors";
import { Root } from "@/routes/Root";
import {
  parseCompareSearch,
  parseNewSearch,
  parseSweepSearch,
  parseSweepsSearch,
  parseTrialSearch,
} from "@/routes/search";
import type { Live } from "@/services/live";

export interface AppContext {
  queries: QueryClient;
  live: Live;
}

const rootRoute = createRootRouteWithContext<AppContext>()({ component: Root, notFoundComponent: NotFoundPage });

const home = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/sweeps", replace: true });
  },
});

const sweeps = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sweeps",
  validateSearch: parseSweepsSearch,
  component: lazyRouteComponent(() => import("@/routes/SweepsPage"), "SweepsPage"),
});

const newSweep = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sweeps/new",
  validateSearch: parseNewSearch,
  component: lazyRouteComponent(() => import("@/routes/new/NewSweepPage"), "NewSweepPage"),
});

const sweep = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sweeps/$sweepId",
  validateSearch: parseSweepSearch,
  component: lazyRouteComponent(() => import("@/routes/sweep/SweepPage"), "SweepPage"),
});

const trial = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sweeps/$sweepId/trials/$number",
  validateSearch: parseTrialSearch,
  component: lazyRouteComponent(() => import("@/routes/trial/TrialPage"), "TrialPage"),
});

const machines = createRoute({
  getParentRoute: () => rootRoute,
  path: "/machines",
  component: lazyRouteComponent(() => import("@/routes/machines/MachinesPage"), "MachinesPage"),
});

const probes = createRoute({
  getParentRoute: () => rootRoute,
  path: "/probes",
  component: lazyRouteComponent(() => import("@/routes/probes/ProbesPage"), "ProbesPage"),
});

const probe = createRoute({
  getParentRoute: () => rootRoute,
  path: "/probes/$shapeKey",
  component: lazyRouteComponent(() => import("@/routes/probes/ProbePage"), "ProbePage"),
});

const settings = createRoute({
  getParentRoute: () => rootRoute,
  path: "/settings",
  component: lazyRouteComponent(() => import("@/routes/settings/SettingsPage"), "SettingsPage"),
});

const compare = createRoute({
  getParentRoute: () => rootRoute,
  path: "/compare",
  validateSearch: parseCompareSearch,
  component: lazyRouteComponent(() => import("@/routes/compare/ComparePage"), "ComparePage"),
});

const health = createRoute({
  getParentRoute: () => rootRoute,
  path: "/health",
  component: lazyRouteComponent(() => import("@/routes/health/HealthPage"), "HealthPage"),
});

export function newRouter(context: AppContext) {
  return createRouter({
    routeTree: rootRoute.addChildren([
      home,
      sweeps,
      newSweep,
      sweep,
      trial,
      machines,
      probes,
      probe,
      settings,
      health,
      compare,
    ]),
    basepath: readConfig().base,
    context,
    defaultErrorComponent: ErrorPage,
    scrollRestoration: true,
    search: { strict: true }, // a page gets only what its own check let pass
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof newRouter>;
  }
}
