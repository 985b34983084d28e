/** A test of what can be tested from here, one line a part. Each is the real thing: nothing is only looked up. */
import type { Calls } from "../api/calls";
import type { Agent } from "../api/types";
import { messageOf, sentence } from "./actions";
import { outcomeWord } from "./words";

export interface Line {
  name: string;
  ok: boolean;
  detail: string;
}

const failed =
  (name: string) =>
  (error: unknown): Line[] => [{ name, ok: false, detail: messageOf(error) }];

/** Shows a notice, and says what came of it. */
export async function noticeTest(calls: Calls): Promise<{ ok: boolean; text: string }> {
  try {
    const { outcome, detail } = await calls.testNotice();
    if (outcome === "shown") return { ok: true, text: "A test notice is on the desktop." };
    const why = detail ? `: ${detail}` : "";
    return { ok: false, text: sentence(`the test notice was ${outcomeWord(outcome ?? "pending")}${why}`) };
  } catch (error) {
    return { ok: false, text: messageOf(error) };
  }
}

/** Tells each line as soon as it is known. Ends with the last. */
export async function selfTest(
  calls: Calls,
  agents: readonly Agent[],
  tell: (lines: Line[]) => void,
): Promise<void> {
  const own = calls.selfTest().then(
    (items): Line[] =>
      items.map(({ component, ok, detail, tookMs }) => ({
        name: component,
        ok,
        detail: `${sentence(detail)} ${String(tookMs)} ms.`,
      })),
    failed("engine"),
  );
  const each = agents.map((agent) =>
    calls.testAgent(agent.name).then(
      (test): Line[] => [
        {
          name: `agent ${agent.name}`,
          ok: test.reachable,
          detail: sentence(
            [
              test.reachable ? "it answers" : "it does not answer",
              ...(test.dialect ? [`speaks A2A ${test.dialect}`] : []),
              ...test.notes,
            ].join(", "),
          ),
        },
      ],
      failed(`agent ${agent.name}`),
    ),
  );
  await Promise.all(
    [own, ...each].map(async (part) => {
      tell(await part);
    }),
  );
}
