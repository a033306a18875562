import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, messageOf } from "../../../ground/base/index.ts";
import { CommandError, run } from "./command.ts";
import { containerdConfig, type Snapshotter } from "./containerd-config.ts";
import { criHasImage, criStatus } from "./cri-calls.ts";
import type { MachineLayout } from "./layout.ts";
import { loopbackOf } from "./loopback.ts";
import { findCniPlugins, writeCniConfig } from "./network.ts";
import { type OciImage, ociArchive } from "./oci-image.ts";
import { identify, isRunning, type MachineProcess, processOf } from "./processes.ts";

const overlayfsMagic = 0x794c7630;

/** Starts the machine's containerd, or finds it running; returns when CRI answers. */
export async function startContainerd(
  layout: MachineLayout,
  subnet: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<MachineProcess> {
  const running = await processOf(layout, "containerd");
  let process = running ?? (await launch(layout, subnet));
  const deadline = clock.monotonic() + 60_000;
  for (;;) {
    const status = await criStatus(layout.endpoint, clock);
    if (status.answers) return process;
    if (!(await isRunning(process))) {
      // One that was killed is found running until the kernel is done with it.
      if (process === running) {
        process = await launch(layout, subnet);
        continue;
      }
      throw new Error(`containerd ended while starting: ${await lastLines(layout.containerdLog)}`);
    }
    if (clock.monotonic() > deadline) {
      const message = `containerd does not answer within a minute: ${messageOf(status.error)}; see ${layout.containerdLog}`;
      throw new Error(message, { cause: status.error });
    }
    await clock.sleep(20, signal);
  }
}

async function launch(layout: MachineLayout, subnet: string): Promise<MachineProcess> {
  await mkdir(layout.registryHostsDir, { recursive: true });
  await writeCniConfig(layout, subnet);
  const snapshotter = await snapshotterFor(layout.stateDir);
  const config = containerdConfig(layout, snapshotter, await findCniPlugins(), loopbackOf());
  await writeFile(layout.containerdConfig, config);
  const log = await open(layout.containerdLog, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  try {
    const pid = await spawnDetached("containerd", ["--config", layout.containerdConfig], log);
    const identity = await identify(pid);
    if (identity === undefined) throw new Error(`containerd ended at once: ${await lastLines(layout.containerdLog)}`);
    return { ...identity, role: "containerd" };
  } finally {
    await log.close();
  }
}

/** Starts a program that goes on when we end; its output goes to `log`. */
export function spawnDetached(
  program: string,
  args: readonly string[],
  log: FileHandle,
  env?: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      detached: true,
      ...(env !== undefined && { env }),
      stdio: ["ignore", log.fd, log.fd],
    });
    child.once("error", (error) => reject(new CommandError([program, ...args].join(" "), "", error)));
    child.once("spawn", () => {
      child.unref();
      resolve(child.pid ?? 0);
    });
  });
}

/** overlayfs does not stack on itself, as a machine inside a container would need. */
async function snapshotterFor(stateDir: string): Promise<Snapshotter> {
  return (await statfs(stateDir)).type === overlayfsMagic ? "native" : "overlayfs";
}

/** Brings images into containerd and waits until CRI knows them. */
export async function importImages(
  layout: MachineLayout,
  endpoint: string,
  images: readonly OciImage[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const archive = join(layout.stateDir, "import.tar");
  await writeFile(archive, ociArchive(images));
  const socket = endpoint.replace("unix://", "");
  const args = ["--address", socket, "--namespace", "k8s.io", "images", "import", archive];
  await run("ctr", args, { signal }).finally(() => rm(archive));
  const deadline = clock.monotonic() + 30_000;
  for (const { name } of images) {
    while (!(await criHasImage(endpoint, name, clock))) {
      if (clock.monotonic() > deadline)
        throw new Error(`image ${name} was imported, but CRI at ${endpoint} does not list it`);
      await clock.sleep(20, signal);
    }
  }
}

export async function lastLines(path: string, count = 10): Promise<string> {
  try {
    return (await readFile(path, "utf8")).trimEnd().split("\n").slice(-count).join("\n");
  } catch (error) {
    return `(${messageOf(error)})`;
  }
}
