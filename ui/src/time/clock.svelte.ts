/** The present, once a second, for everything that shows an age. */
class Clock {
  now = $state(Date.now());

  /** Starts ticking; answers how to stop. A hidden page does not tick, and is right again when it is shown. */
  start(): () => void {
    const tick = (): void => {
      if (!document.hidden) this.now = Date.now();
    };
    const timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }
}

export const clock = new Clock();
