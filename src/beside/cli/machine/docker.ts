import { constants } from "node:fs";
import { mkdir, open, rm, statfs, writeFile } from "node:fs/promises";
import { type Clock, messageOf } from "../../../ground/base/index.ts";
import { CommandError, run } from "./command.ts";
import { lastLines, spawnDetached } from "./containerd.ts";
import { dockerAnswers, dockerHasImage, dockerLoad } from "./docker-calls.ts";
import type { MachineLayout } from "./layout.ts";
import { writeCniConfig } from "./network.ts";
import { dockerArchive, type OciImage } from "./oci-image.ts";
import { identify, isRunning, type MachineProcess, type MachineRole, processOf } from "./processes.ts";

const overlayfsMagic = 0x794c7630;
const patienceMs = 60_000;

/** Starts the machine's dockerd and the containerd below it, or finds them running; returns when Docker answers. */
export async function startDockerd(
  layout: MachineLayout,
  subnet: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<MachineProcess> {
  await writeCniConfig(layout, subnet);
  let containerd = (await processOf(layout, "containerd")) ?? (await launchContainerd(layout));
  const running = await processOf(layout, "dockerd");
  let process = running ?? (await launchDockerd(layout));
  const deadline = clock.monotonic() + patienceMs;
  for (;;) {
    const answer = await dockerAnswers(layout.dockerSocket, signal);
    if (answer === true) return process;
    // One that was killed is found running until the kernel is done with it; dockerd waits for the next.
    if (!(await isRunning(containerd))) containerd = await launchContainerd(layout);
    if (!(await isRunning(process))) {
      if (process !== running) throw new Error(`dockerd ended while starting: ${await lastLines(layout.dockerLog)}`);
      process = await launchDockerd(layout);
      continue;
    }
    if (clock.monotonic() > deadline) {
      throw new Error(`dockerd does not answer within a minute: ${messageOf(answer)}; see ${layout.dockerLog}`, {
        cause: answer,
      });
    }
    await clock.sleep(50, signal);
  }
}

async function launchContainerd(layout: MachineLayout): Promise<MachineProcess> {
  await writeFile(layout.containerdConfig, plainContainerdConfig(layout));
  return await launch("containerd", "containerd", ["--config", layout.containerdConfig], layout.containerdLog);
}

/** Docker wants a containerd without any part of Kubernetes. */
function plainContainerdConfig({ containerdRoot, containerdRun, containerdSocket }: MachineLayout): string {
  const quote = JSON.stringify;
  return `version = 2
root = ${quote(containerdRoot)}
state = ${quote(containerdRun)}
oom_score = 0
disabled_plugins = ["io.containerd.grpc.v1.cri"]

[grpc]
  address = ${quote(containerdSocket)}
`;
}

async function launchDockerd(layout: MachineLayout): Promise<MachineProcess> {
  await mkdir(layout.dockerRoot, { recursive: true, mode: 0o711 });
  // Of one that was killed: by now its number may be somebody else's, whom dockerd would take for itself.
  await rm(layout.dockerPid, { force: true });
  const config = await daemonConfig(layout);
  await writeFile(layout.dockerConfig, `${JSON.stringify(config, undefined, 2)}\n`);
  const driver = (await statfs(layout.stateDir)).type === overlayfsMagic ? "vfs" : "overlay2";
  const args = [
    ...["--config-file", layout.dockerConfig],
    ...["--data-root", layout.dockerRoot, "--exec-root", layout.dockerRun, "--pidfile", layout.dockerPid],
    ...["--host", `unix://${layout.dockerSocket}`, "--containerd", layout.containerdSocket],
    ...["--storage-driver", driver, "--cgroup-parent", `${layout.cgroupRoot}/docker`],
    // Pods have CNI; nothing of the machine's own network is touched.
    ...["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"],
  ];
  return await launch("dockerd", "dockerd", args, layout.dockerLog);
}

/** Containers outlive their daemon. Older ones would keep a key outside the machine's directory. */
async function daemonConfig(layout: MachineLayout): Promise<object> {
  const version = await dockerVersion();
  return { "live-restore": true, ...(version < 23 && { "deprecated-key-path": layout.dockerKey }) };
}

async function dockerVersion(): Promise<number> {
  try {
    const text = await run("dockerd", ["--version"]);
    return Number(/version (\d+)\./.exec(text)?.[1] ?? 0);
  } catch (error) {
    if (!(error instanceof CommandError && error.absent)) throw error;
    throw new Error('there is no dockerd on this machine; install it with "apt-get install docker.io"', {
      cause: error,
    });
  }
}

async function launch(
  role: MachineRole,
  program: string,
  args: readonly string[],
  logPath: string,
): Promise<MachineProcess> {
  const log = await open(logPath, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
  try {
    const identity = await identify(await spawnDetached(program, args, log));
    if (identity === undefined) throw new Error(`${program} ended at once: ${await lastLines(logPath)}`);
    return { ...identity, role };
  } finally {
    await log.close();
  }
}

/** Brings those of the images into Docker that it does not have. */
export async function loadDockerImages(
  layout: MachineLayout,
  images: readonly OciImage[],
  signal: AbortSignal,
): Promise<void> {
  const missing: OciImage[] = [];
  for (const image of images) if (!(await dockerHasImage(layout.dockerSocket, image.name, signal))) missing.push(image);
  if (missing.length > 0) await dockerLoad(layout.dockerSocket, dockerArchive(missing), signal);
}
