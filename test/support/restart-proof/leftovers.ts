import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { CriClient } from "../../../src/connections/cri/index.ts";
import { readMounts } from "../../../src/connections/host/index.ts";
import { eventually } from "../agent.ts";
import type { TestContainerd } from "../containerd.ts";
import { readLimits } from "./cgroup-watch.ts";

/** What pods leave behind, by the first word of a line; while pods run there is some of each. */
export const kindsOfRemains = [
  "sandbox",
  "container",
  "directory",
  "logs",
  "interface",
  "address",
  "mount",
  "cgroup",
] as const;

/** What is left of pods on a node that should have none, and in the API, one line each; gives it time to go. */
export async function leftovers(
  containerd: TestContainerd,
  cri: CriClient,
  patienceMs: number,
  podsInApi: () => Promise<readonly string[]> = async () => [],
): Promise<readonly string[]> {
  let left: readonly string[] = [];
  const isEmpty = async (): Promise<boolean> => {
    left = [...(await look(containerd, cri)), ...(await podsInApi()).map((name) => `pod ${name} in the API`)];
    return left.length === 0;
  };
  await eventually(isEmpty, "nothing left", patienceMs).catch(() => {});
  return left;
}

/** What there is of pods on the node at this moment. */
export async function look({ layout }: TestContainerd, cri: CriClient): Promise<readonly string[]> {
  const names = async (kind: string, directory: string): Promise<readonly string[]> => {
    const found = await readdir(directory).catch(() => []);
    return found.map((name) => `${kind} ${name}`);
  };
  const { items } = await cri.runtime.listPodSandbox({ filter: undefined });
  const { containers } = await cri.runtime.listContainers({ filter: undefined });
  const mounts = (await readMounts()).map(({ mountPoint }) => mountPoint);
  const cgroups = [...(await readLimits(layout.cgroupRoot)).keys()].filter((path) =>
    /[/-]pod[0-9a-f_-]{32,}/.test(path),
  );
  return [
    ...items.map(({ id }) => `sandbox ${id}`),
    ...containers.map(({ id }) => `container ${id}`),
    ...(await names("directory", join(layout.agentRoot, "pods"))),
    ...(await names("logs", layout.podLogsDir)),
    // The other end of a pod's interface is in its network namespace: gone with it.
    ...(await names("interface", `/sys/class/net/${layout.bridge}/brif`)),
    ...(await names("address", join(layout.cniIpamDir, layout.network))).filter((line) =>
      /\d+\.\d+\.\d+\.\d+$/.test(line),
    ),
    ...mounts
      .filter((path) => isBelow(path, layout.agentRoot) || isBelow(path, layout.containerdRun))
      .map((path) => `mount ${path}`),
    ...cgroups.map((path) => `cgroup ${path}`),
  ];
}

function isBelow(path: string, directory: string): boolean {
  return path.startsWith(`${directory}/`);
}
