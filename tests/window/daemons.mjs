// What a desktop session has beside its screen and bus: an unlocked keyring, and a service that shows notices and
// whose buttons are pressed the way its user presses them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, scratch, start, waitUntil } from "./support.mjs";

const send = (env, to, object, method, ...args) =>
  run("dbus-send", ["--session", "--print-reply", `--dest=${to}`, object, method, ...args], env);

/** Whether a service is there. To call it by its name would have the bus start another one. */
const stands = (env, name) =>
  send(
    env,
    "org.freedesktop.DBus",
    "/org/freedesktop/DBus",
    "org.freedesktop.DBus.NameHasOwner",
    `string:${name}`,
  ).includes("boolean true");

/** A keyring of this desktop alone, unlocked with an empty password. */
export async function keyring(env) {
  const control = join(scratch, "keyring");
  mkdirSync(control, { mode: 0o700 });
  const daemon = start(
    "gnome-keyring-daemon",
    ["--foreground", "--unlock", "--components=secrets", "--control-directory", control],
    { env, stdio: ["pipe", "pipe", "pipe"] },
  );
  // The password ends with the input; a newline counts as one character.
  daemon.stdin.end("\n");
  await waitUntil("keyring", () => stands(env, "org.freedesktop.secrets"));
  await waitUntil("unlocked keyring", () =>
    send(
      env,
      "org.freedesktop.secrets",
      "/org/freedesktop/secrets/collection/login",
      "org.freedesktop.DBus.Properties.Get",
      "string:org.freedesktop.Secret.Collection",
      "string:Locked",
    ).includes("boolean false"),
  );
}

/** The notification service. Its menu of buttons, which a user picks from, is answered by a script. */
export async function noticeService(env) {
  const folder = join(scratch, "dunst");
  mkdirSync(folder);
  const [wish, menu, picker, config] = ["wish", "menu", "picker", "dunstrc"].map((name) => join(folder, name));
  writeFileSync(picker, `#!/bin/sh\ncat >'${menu}'\ngrep -m1 -F -- "$(cat '${wish}')" '${menu}'\n`, { mode: 0o755 });
  writeFileSync(config, `[global]\n    dmenu = ${picker}\n`);
  start("dunst", ["-config", config], { env, stdio: ["ignore", "pipe", "pipe"] });
  await waitUntil("notification service", () => stands(env, "org.freedesktop.Notifications"));
  const count = (which) => Number(run("dunstctl", ["count", which], env));
  return {
    shown: () => count("displayed") + count("waiting"),
    /** Title and text of what was shown and is gone, the newest first. */
    history: () =>
      JSON.parse(run("dunstctl", ["history"], env)).data[0].map((one) => ({
        title: one.summary.data,
        body: one.body.data,
      })),
    closeAll: () => run("dunstctl", ["close-all"], env),
    /** Opens the menu of what is shown and picks the button whose action has that name. */
    press(action) {
      writeFileSync(wish, `,${action}]`);
      run("dunstctl", ["context"], env);
    },
    /** The menu that was last opened. */
    menu: () => readFileSync(menu, "utf8"),
  };
}
