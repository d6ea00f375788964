import { createTheme, type CSSVariablesResolver } from "@mantine/core";

/** One accent colour, the deep teal of a harbour; all else is grey, and states have their own. */
export const theme = createTheme({
  primaryColor: "sea",
  primaryShade: 7, // one for light and dark: Mantine chooses the text on it once, for both
  autoContrast: true,
  luminanceThreshold: 0.183, // below it white has a contrast of 4.5: 1.05 / 4.5 - 0.05
  colors: {
    dark: [
      "#d5dbdf",
      "#bcc5cb",
      "#8f9aa2",
      "#65717a",
      "#48535b",
      "#39424a",
      "#2a3137",
      "#20262b",
      "#171c20",
      "#11151a",
    ],
    sea: ["#e6f6f8", "#d0e9ed", "#a1d3da", "#6dbbc6", "#45a8b5", "#2f9cab", "#1f8b9b", "#0b6a78", "#085863", "#044750"],
  },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  defaultRadius: "sm",
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "1.5rem" }, h2: { fontSize: "1.125rem" }, h3: { fontSize: "1rem" } },
  },
});

/** Mantine's dimmed text is below the contrast of 4.5 that small text needs. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5c6770",
    "--mantine-color-error": "#b3261e",
    "--line": "#dde2e6",
    "--surface": "#ffffff",
    "--page": "#f6f8f9",
    "--done": "#1b7f4b",
    "--run": "#0b6a78",
    "--wait": "#8a94a0",
    "--bad": "#b3261e",
    "--warn": "#8a5a00",
    "--other": "#9aa4ad",
  },
  dark: {
    "--mantine-color-dimmed": "#a3adb5",
    "--mantine-color-error": "#ff8a80",
    "--line": "#39424a",
    "--surface": "#20262b",
    "--page": "#171c20",
    "--done": "#4cc38a",
    "--run": "#45b5c4",
    "--wait": "#7d8791",
    "--bad": "#ff8a80",
    "--warn": "#f0b849",
    "--other": "#6b757e",
  },
});
