const PAUSED = "berth-live-paused";

/** isPaused says that the person of this browser wants pages to stay as they are. */
export function isPaused(): boolean {
  return localStorage.getItem(PAUSED) === "yes";
}

export function keepPaused(paused: boolean): void {
  localStorage.setItem(PAUSED, paused ? "yes" : "no");
}
