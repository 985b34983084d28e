// What a test says, counted, and waiting for what comes by itself.

export const count = { passed: 0, failed: 0 };

export function check(sentence, holds, seen) {
  holds ? (count.passed += 1) : (count.failed += 1);
  console.log(holds ? `ok      ${sentence}` : `FAILED  ${sentence}: ${JSON.stringify(seen)}`);
}

export async function waitUntil(what, ask, limit = 15_000) {
  const end = performance.now() + limit;
  while (performance.now() < end) {
    const value = await ask();
    if (value) return value;
    await new Promise((next) => setTimeout(next, 50));
  }
  throw new Error(`no ${what} within ${limit / 1000} s`);
}

const anchor = (task) => {
  const slash = task.indexOf("/");
  return `#/tasks/${task.slice(0, slash)}/${encodeURIComponent(task.slice(slash + 1))}`;
};
export const show = (page, task) => page.evaluate((to) => (location.hash = to), anchor(task));
