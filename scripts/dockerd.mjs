// Gives tests and benches a dockerd: the machine's own where it has one, else Debian's package, unpacked and not installed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SetupError } from "./setup.mjs";

const cache = process.env.NODELET_DOCKER_DIR ?? "/var/tmp/nodelet-docker";

/** Puts a dockerd on this process's PATH. Starts none, and touches none that runs. */
export function provideDockerd() {
  const path = (process.env.PATH ?? "").split(delimiter);
  if (path.some((directory) => existsSync(join(directory, "dockerd")))) return;
  const unpacked = join(cache, "root");
  if (!existsSync(join(unpacked, "usr/sbin/dockerd"))) unpack(unpacked);
  process.env.PATH = [join(unpacked, "usr/sbin"), join(unpacked, "usr/bin"), ...path].join(delimiter);
}

function unpack(target) {
  if (process.getuid() !== 0) throw new SetupError("Tests with Docker start containers, which needs root.");
  console.error("nodelet: unpacking Debian's docker.io (nothing is installed)");
  const draft = join(cache, `draft-${process.pid}`);
  mkdirSync(draft, { recursive: true });
  try {
    // The list of packages may be old or absent.
    if (!runIn(draft, "apt-get", "download", "docker.io")) {
      runIn(draft, "apt-get", "update");
      if (!runIn(draft, "apt-get", "download", "docker.io"))
        throw new SetupError('"apt-get download docker.io" failed, see above.');
    }
    const archive = readdirSync(draft).find((name) => name.endsWith(".deb"));
    if (!runIn(draft, "dpkg", "-x", archive, "root")) throw new SetupError(`"dpkg -x ${archive}" failed, see above.`);
    rmSync(target, { recursive: true, force: true });
    renameSync(join(draft, "root"), target);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function runIn(cwd, program, ...args) {
  return spawnSync(program, args, { cwd, stdio: ["ignore", 2, 2] }).status === 0;
}
