// A Debian 12 system of its own, in a folder: what `apt` installs there is all it has, and the machine that runs the
// tests is not changed. Made by mmdebstrap from the archive that this machine's apt uses, kept for the next time, and
// entered with its own mounts, process ids and, once things are installed, its own network without a way out.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

const INSTALL_MS = 15 * 60_000;
const kept = process.env.TASKBELL_DEBIAN ?? join(homedir(), ".cache/taskbell/debian12/minbase.tar");

/** Runs a program to its end; what it said on standard output, or an error with all that it said. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 1 << 26,
    ...options,
  });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    const said = `${result.stdout ?? ""}${result.stderr ?? ""}`.trim().slice(-3000);
    throw new Error(
      `${command} ${args.join(" ").slice(0, 300)} ended with ${result.status ?? result.signal}: ${said}`,
    );
  }
  return (result.stdout ?? "").trim();
}

/** The base, made once; made anew when it is a week old, since the archive moves on. */
function base() {
  const age = existsSync(kept) ? Date.now() - Number(run("stat", ["-c", "%Y", kept])) * 1000 : Infinity;
  if (age < 7 * 24 * 3600_000) return kept;
  mkdirSync(join(kept, ".."), { recursive: true });
  console.log("making a Debian 12 system (some minutes, once)");
  // Where this machine's apt gets Debian 12 from; elsewhere Debian's own place, which mmdebstrap knows.
  const own = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
  const sources = own.filter((path) => existsSync(path) && / bookworm\b/.test(run("cat", [path])));
  const made = `${kept}.${process.pid}.tar`;
  const args = ["--quiet", "--variant=minbase", "--format=tar", "bookworm", made, ...sources.slice(0, 1)];
  run("mmdebstrap", args, { timeout: INSTALL_MS });
  renameSync(made, kept);
  return kept;
}

export class System {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "taskbell-debian-"));
    this.root = join(this.folder, "root");
    mkdirSync(this.root);
    run("tar", ["-xpf", base(), "-C", this.root, "--numeric-owner"]);
    cpSync("/etc/resolv.conf", join(this.root, "etc/resolv.conf"), { dereference: true });
    // How this machine reaches the archive: a proxy, for one.
    const reach = run("apt-config", ["dump"])
      .split("\n")
      .filter((line) => line.startsWith("Acquire::") && !line.endsWith('"";'));
    writeFileSync(join(this.root, "etc/apt/apt.conf.d/00reach"), `${reach.join("\n")}\n`);
    // It need not outlive a power cut.
    writeFileSync(join(this.root, "etc/dpkg/dpkg.cfg.d/quick"), "force-unsafe-io\n");
    // No service starts within: there is no system that would run it.
    writeFileSync(join(this.root, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    this.asRoot("useradd --create-home --shell /bin/bash person");
    this.asRoot("install -d -m 700 -o person -g person /run/user/1000");
  }

  /** The command line that enters: by `user`, with a network or without. */
  entering(script, { user = "root", network = false, display } = {}) {
    const home = user === "root" ? "/root" : `/home/${user}`;
    const env = {
      HOME: home,
      USER: user,
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      LANG: "C.UTF-8",
      DEBIAN_FRONTEND: "noninteractive",
      ...(user === "root" ? {} : { XDG_RUNTIME_DIR: "/run/user/1000" }),
      // A screen without a graphics card cannot share buffers with one.
      ...(display ? { DISPLAY: display, GDK_BACKEND: "x11", LIBGL_ALWAYS_SOFTWARE: "1" } : {}),
    };
    const enter = `
      set -e
      root=$1 user=$2 script=$3 network=$4; shift 4
      [ "$network" = yes ] || ip link set lo up
      mount --rbind /dev "$root/dev"
      mount -t proc proc "$root/proc"
      mkdir -p /tmp/.X11-unix "$root/tmp/.X11-unix"
      mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix"
      exec env -i "$@" chroot --userspec="$user:$user" "$root" bash -c "cd; $script"`;
    const apart = ["--mount", "--pid", "--fork", "--kill-child", ...(network ? [] : ["--net"])];
    const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    return [
      "unshare",
      [...apart, "bash", "-c", enter, "enter", this.root, user, script, network ? "yes" : "no", ...words],
    ];
  }

  /** Runs a script within to its end. Without a network. */
  asRoot(script, options = {}) {
    return run(...this.entering(script), options);
  }

  asPerson(script, options = {}) {
    return run(...this.entering(script, { user: "person", ...options }), options);
  }

  /** Starts a script within; ends with `stop`. Its output gathers in `log`. */
  start(script, options = {}) {
    const child = spawn(...this.entering(script, { user: "person", ...options }), {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child.log = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (child.log += text));
    child.stop = () => {
      // The first process within dies with unshare, and every other with the first.
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
    };
    return child;
  }

  /** Installs by apt, with the network. */
  install(what, extra = "") {
    const script = `apt-get -q -y ${extra} install ${what}`;
    return run(...this.entering(script, { network: true }), { timeout: INSTALL_MS });
  }

  refresh() {
    run(...this.entering("apt-get -q update", { network: true }), { timeout: INSTALL_MS });
  }

  /** Puts a file of this machine into it. */
  put(file, path) {
    execFileSync("install", ["-m", "644", file, join(this.root, path)]);
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
