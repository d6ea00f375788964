import { forgetKey } from "@/lib/keys";

const KEPT = "berth-draft"; // outlives a reload and a log-in, not the tab

const OWNER = "berth-drafts-of";

const keyOf = (from: string) => (from === "" ? KEPT : `${KEPT}:${from}`);

/** readDraft is the user's text that began with from ("" = a blank, "example", or the id of a sweep); null = none. */
export function readDraft(from: string, store: Storage = sessionStorage): string | null {
  return store.getItem(keyOf(from));
}

/** keepDraft keeps a text, or nothing of it when it is more than a browser keeps: half a file is worse than none. */
export function keepDraft(from: string, text: string, store: Storage = sessionStorage): void {
  try {
    store.setItem(keyOf(from), text);
  } catch {
    store.removeItem(keyOf(from));
  }
}

export function forgetDraft(from: string, store: Storage = sessionStorage): void {
  store.removeItem(keyOf(from));
}

/** draftsOf forgets drafts that another person left in this tab, whose session ended without a log-out. */
export function draftsOf(person: string, store: Storage = sessionStorage): void {
  const before = store.getItem(OWNER);
  if (before !== null && before !== person) {
    forgetDrafts(store);
    forgetKey(store);
  }
  store.setItem(OWNER, person);
}

/** forgetDrafts is called when a person leaves: the next one must not see them. */
export function forgetDrafts(store: Storage = sessionStorage): void {
  for (const key of Object.keys(store)) if (key === KEPT || key.startsWith(`${KEPT}:`)) store.removeItem(key);
}
