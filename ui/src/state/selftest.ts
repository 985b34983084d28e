/** A test of what can be tested from here, one line a part. Each is the real thing: nothing is only looked up. */
import type { Calls } from "../api/calls";
import type { Agent } from "../api/types";
import { messageOf, sentence } from "./actions";

export interface Line {
  name: string;
  ok: boolean;
  detail: string;
}

const failed =
  (name: string) =>
  (error: unknown): Line[] => [{ name, ok: false, detail: messageOf(error) }];

/** Tells each line as soon as it is known. Ends with the last. */
export async function selfTest(
  calls: Calls,
  agents: readonly Agent[],
  tell: (lines: Line[]) => void,
): Promise<void> {
  const inbox = calls.testInbox().then(
    (tests): Line[] =>
      tests.map((test) => ({
        name: `inbox, A2A ${test.dialect}`,
        ok: test.ok && test.stored,
        detail: test.ok
          ? `A callback of our own was taken and kept in ${String(test.tookMs)} ms.`
          : sentence(test.error ?? "it was not taken"),
      })),
    failed("inbox"),
  );
  const notice = calls.testNotice().then(
    ({ outcome, detail }): Line[] => [
      {
        name: "notices",
        ok: outcome === "shown",
        detail:
          outcome === "shown"
            ? "A test notice is on the desktop."
            : sentence(
                `not shown: ${(outcome ?? "pending").replaceAll("-", " ")}${detail ? `: ${detail}` : ""}`,
              ),
      },
    ],
    failed("notices"),
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
    [inbox, notice, ...each].map(async (part) => {
      tell(await part);
    }),
  );
}
