const LONG = 30_000; // ms: a short look at another tab closes nothing

/**
 * whileHidden calls sleep once the page has been hidden for 30 s, and wake when
 * it is shown after that. The result ends both.
 */
export function whileHidden(sleep: () => void, wake: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hiddenAt = 0;
  let asleep = false;

  const seen = () => {
    clearTimeout(timer);
    if (document.hidden) {
      hiddenAt = Date.now();
      timer = setTimeout(() => {
        asleep = true;
        sleep();
      }, LONG);

      return;
    }
    // A machine that slept did not run the timer.
    if (asleep || (hiddenAt > 0 && Date.now() - hiddenAt > LONG)) wake();
    asleep = false;
    hiddenAt = 0;
  };
  document.addEventListener("visibilitychange", seen);
  if (document.hidden) seen(); // opened in a tab behind

  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
