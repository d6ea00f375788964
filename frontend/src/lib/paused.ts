const KEPT = "berth-live-paused"; // of all tabs

let paused = false; // this tab

/** isPaused says that the pages of this tab stay as they are. */
export function isPaused(): boolean {
  return paused;
}

/** holdPages is called whenever this tab pauses or goes on. */
export function holdPages(hold: boolean): void {
  paused = hold;
}

/** wasPaused is this browser's last choice, in any tab: a new tab begins with it. */
export function wasPaused(): boolean {
  return localStorage.getItem(KEPT) === "yes";
}

export function keepPaused(hold: boolean): void {
  localStorage.setItem(KEPT, hold ? "yes" : "no");
}
