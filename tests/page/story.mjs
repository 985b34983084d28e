// A desk as somebody has it on a working day: some agents, what they do, and what went wrong.
import { Agent } from "./agent.mjs";

const text = (name, body) => [{ artifactId: name, name, parts: [{ text: body }] }];

/** What an agent brings on a good day. */
export const REPORT = `# Recall under deletes

Deleting **10 %** of the vectors without a rebuild costs between 0.4 and 3.1 points of recall at 10, depending on how the index repairs its graph. [The longest of the papers](https://papers.example.org/2311.01234) measures it directly.

| index | after 10 % | after 30 % | repair |
|---|---:|---:|---|
| HNSW, tombstones | 0.951 | 0.887 | none |
| HNSW, repaired | 0.968 | 0.949 | neighbours of the deleted |
| DiskANN, streaming | 0.972 | 0.961 | batched consolidation |

1. Tombstones are cheap until about a fifth of the graph is dead.
2. Repairing in batches of 1,000 costs less than 2 % of the build.

> The effect is small where queries follow the distribution of the inserts.

\`\`\`
recall@10 = hits / (10 * queries)
\`\`\`
`;

const TASKS = [
  {
    agent: "ledger-agent",
    title: "Migrate billing to the new ledger",
    steps: ["Read the chart of accounts", "Compared 48,211 entries", "1,204 entries differ by rounding"],
    cutAfter: 1,
    end: {
      state: "INPUT_REQUIRED",
      text: "Which account should the 2024 rounding differences go to?\n\nI found 1,204 entries with a total of 3.18 EUR. Options: 4840 rounding, 4900 other.",
    },
  },
  {
    agent: "ops-runner",
    title: "Rotate staging certificates",
    end: { state: "AUTH_REQUIRED", text: "Approve the device code WDJB-MJHT in your browser, then I go on." },
  },
  { agent: "reader", title: "Research: vector index recall under deletes", steps: ["Reading paper 14 of an open list"] },
  { agent: "codegen", title: "Regenerate API clients for all services", steps: ["inventory-service: 214 of 310 models"] },
  {
    agent: "codegen",
    title:
      "Port the customer-facing export pipeline from the old job runner to the new one, keep the CSV byte for byte, and write down every place where the old behaviour was an accident that somebody now depends on",
    steps: ["Comparing output of 48 fixtures"],
  },
  { agent: "reader", title: "لخّص ملاحظات اجتماع الأسبوع الماضي وأرسل القرارات", steps: ["أقرأ الملاحظات الآن: 3 من 7"] },
  { agent: "nightly", title: "Nightly dependency review", steps: ["Checked 61 of 188 packages"], agentStops: true },
  {
    agent: "reader",
    title: "Compare recall of the three candidate indexes",
    end: { state: "COMPLETED", text: "Three indexes compared.", artifacts: text("recall.md", REPORT) },
  },
  {
    agent: "reader",
    title: "Summarise incident 4112",
    end: { state: "COMPLETED", text: "Two pages.", artifacts: text("incident-4112.md", "# Incident 4112\n\nThe queue filled.") },
  },
  {
    agent: "codegen",
    title: "Translate release notes (de, fr, ja)",
    end: { state: "COMPLETED", text: "Three files.", artifacts: text("notes.ja.md", "# リリースノート\n\n修正しました。") },
  },
  { agent: "ops-runner", title: "Backfill search index", end: { state: "FAILED", text: "Quota exceeded after 41 min" } },
  { agent: "ledger-agent", title: "Close the books of March twice", end: { state: "REJECTED", text: "March is closed." } },
];

export const TITLES = TASKS.map((task) => task.title);

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

/** Plays it. Answers the agents, to be stopped, and the names of the tasks by title. */
export async function play(engine, { pace = 60, extra = 0 } = {}) {
  const agents = new Map();
  const tasks = new Map();
  for (const name of ["ledger-agent", "ops-runner", "reader", "codegen", "nightly"]) {
    const agent = await Agent.start(name);
    agents.set(name, agent);
    await engine.call("POST", "/agents", { name, url: agent.url });
  }
  for (let at = 0; at < extra; at += 50) {
    agents.get("codegen").begin = () => ({ state: "COMPLETED", text: "Done." });
    await Promise.all(
      Array.from({ length: Math.min(50, extra - at) }, (_, nth) =>
        engine.send(`Refactor module ${String(at + nth + 1).padStart(3, "0")} of the inventory service`, "codegen"),
      ),
    );
    agents.get("codegen").begin = () => ({ state: "WORKING", text: "" });
  }
  for (const { agent: name, title, steps = [], cutAfter, end, agentStops } of TASKS.toReversed()) {
    const agent = agents.get(name);
    const task = await engine.send(title, name);
    tasks.set(title, task);
    const id = task.slice(task.indexOf("/") + 1);
    for (const [at, step] of steps.entries()) {
      await wait(pace);
      agent.update(id, { state: "WORKING", text: step });
      if (cutAfter === at + 1) {
        await wait(pace);
        agent.cut(id);
        await wait(1500);
      }
    }
    await wait(pace);
    if (end) agent.update(id, end);
    if (agentStops) {
      await wait(400);
      await agent.stop();
      agents.delete(name);
    }
  }
  return { agents, tasks };
}
