/** Colours for canvases, which cannot read the variables of the page: the same as in theme.ts. */
export interface Palette {
  ink: string;
  line: string;
  surface: string;
  done: string;
  run: string;
  wait: string;
  bad: string;
  warn: string;
  pick: string;
}

const light: Palette = {
  ink: "#5c6770",
  line: "#dde2e6",
  surface: "#ffffff",
  done: "#1b7f4b",
  run: "#0b6a78",
  wait: "#8a94a0",
  bad: "#b3261e",
  warn: "#8a5a00",
  pick: "#c2410c",
};

const dark: Palette = {
  ink: "#a3adb5",
  line: "#39424a",
  surface: "#20262b",
  done: "#4cc38a",
  run: "#45b5c4",
  wait: "#7d8791",
  bad: "#ff8a80",
  warn: "#f0b849",
  pick: "#ff9e57",
};

export function palette(isDark: boolean): Palette {
  return isDark ? dark : light;
}
