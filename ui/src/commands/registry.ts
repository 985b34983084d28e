/** One list of commands feeds the palette, the keys and the key sheet. Pure: what a command does is its own. */
import { isPlain } from "./keys";

export type Group = "Go" | "Task" | "Start" | "View";

export interface Command {
  id: string;
  title: string;
  group: Group;
  /** As {@link file://./keys.ts} writes them; the first is shown. */
  keys: readonly string[];
  /** Whether it makes sense now. */
  when: () => boolean;
  run: () => void;
  /** Only a key: not worth a line in the palette. */
  quiet?: boolean;
}

/** Two commands of one key would depend on their order. */
export function clashes(commands: readonly Command[]): string[] {
  const seen = new Map<string, string>();
  const found: string[] = [];
  for (const command of commands) {
    for (const key of command.keys) {
      const other = seen.get(key);
      if (other !== undefined) found.push(`${key}: ${other} and ${command.id}`);
      seen.set(key, command.id);
    }
  }
  return found;
}

export function commandFor(
  commands: readonly Command[],
  keys: string,
  writing: boolean,
  /** False where the user has switched single letters off: then only keys with Ctrl, Command or Alt, and named ones. */
  letters = true,
): Command | undefined {
  if ((writing || !letters) && isPlain(keys)) return undefined;
  return commands.find((command) => command.keys.includes(keys) && command.when());
}

/** What the palette shows for what was typed: every word must be found, the earlier the better. */
export function search(commands: readonly Command[], typed: string): Command[] {
  const words = typed.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const place = (command: Command): number => {
    const text = `${command.title} ${command.group}`.toLocaleLowerCase();
    const places = words.map((word) => text.indexOf(word));
    return places.includes(-1) ? -1 : places.reduce((sum, at) => sum + at, 0);
  };
  return commands
    .filter((command) => command.quiet !== true && command.when())
    .map((command) => ({ command, at: place(command) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => (words.length === 0 ? 0 : one.at - other.at))
    .map(({ command }) => command);
}
