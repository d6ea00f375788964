import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

afterEach(cleanup);
configure({ asyncUtilTimeout: 5000 }); // ms: machines that test are busy

// jsdom draws nothing: what a chart needs of a canvas fails at some time after the page is there.
const Drawing = ({ label }: { label?: string }) => <div role="img" aria-label={label} />;
vi.mock("@/plots/EChart", () => ({ default: Drawing }));
vi.mock("@/plots/CurvesChart", () => ({ default: Drawing }));
vi.mock("@/plots/LineChart", () => ({ default: Drawing }));

// jsdom has none of these, and Mantine asks for them.
window.matchMedia = (query: string) =>
  ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
    dispatchEvent: () => false,
  }) as unknown as MediaQueryList;

window.ResizeObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};

window.scrollTo = () => undefined;
window.HTMLElement.prototype.scrollIntoView = vi.fn();

// A growing textarea listens to this.
Object.defineProperty(document, "fonts", {
  value: { addEventListener: () => undefined, removeEventListener: () => undefined },
});

// The editor measures its text with this.
Range.prototype.getClientRects = () => [] as unknown as DOMRectList;
