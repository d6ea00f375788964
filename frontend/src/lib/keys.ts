/** newKey is a random key, also where crypto.randomUUID is missing because the page came over plain HTTP. */
export function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(16));

  return [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * keyFor is the Idempotency-Key for a text: the same as long as the text is, so
 * that a second press after a lost answer makes no second sweep.
 */
export function keyFor(text: string, store: Storage = sessionStorage): string {
  const kept: unknown = JSON.parse(store.getItem(KEPT) ?? "null");
  if (typeof kept === "object" && kept !== null && "text" in kept && "key" in kept) {
    if (kept.text === text && typeof kept.key === "string") return kept.key;
  }

  const key = newKey();
  try {
    store.setItem(KEPT, JSON.stringify({ text, key }));
  } catch {
    store.removeItem(KEPT); // no room beside the drafts: a launch is worth more than a safe repeat
  }

  return key;
}

/** forgetKey is called once the sweep is stored: the same text may make another one. */
export function forgetKey(store: Storage = sessionStorage): void {
  store.removeItem(KEPT);
}

const KEPT = "berth-launch-key";
