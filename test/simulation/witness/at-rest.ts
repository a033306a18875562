import { nodes, pods } from "../../../src/beside/localapi/kinds/index.ts";
import { jsonEqual, type Pod } from "../../../src/ground/model/index.ts";
import { rootDir } from "../agent.ts";
import type { Simulation } from "../simulation.ts";
import { isOver } from "./seen-pods.ts";

/** What is not as the specs say although nothing has disturbed anybody for long; empty when all is well. */
export function untidiness(simulation: Simulation): readonly string[] {
  const problems: string[] = [];
  const { runtime, api, machine, wanted, witness, claims } = simulation;
  if (simulation.agent === undefined) return ["the agent does not run"];
  const apiPods = api.list(pods) as unknown as readonly (Pod & { metadata: { name: string; uid: string } })[];
  const wantedUids = new Set<string>();
  const records = runtime.fake.containers();
  const sandboxes = runtime.fake.sandboxes();
  for (const plan of wanted.values()) {
    const { name, source, containers, pod } = plan;
    const shown = apiPods.find(({ metadata }) => metadata.name === (source === "api" ? name : `${name}-sim`));
    if (shown === undefined) {
      problems.push(`pod ${name} is not in the API${source === "api" ? "" : ", its mirror is missing"}`);
      continue;
    }
    const uid =
      source === "api" ? shown.metadata.uid : (shown.metadata.annotations?.["kubernetes.io/config.mirror"] ?? "");
    wantedUids.add(uid);
    const phase = shown.status?.phase;
    // It may be about to end at this very moment.
    if (pod.spec?.activeDeadlineSeconds !== undefined && !isOver(phase)) continue;
    const statuses = [...(shown.status?.containerStatuses ?? []), ...(shown.status?.initContainerStatuses ?? [])];
    for (const container of containers) {
      const own = records.filter(({ config }) => config.metadata?.name === container.name);
      const isRunning = own.some(({ life }) => life.step === "running");
      const status = statuses.find((each) => each.name === container.name);
      if (isRunning !== (status?.state?.running !== undefined)) {
        const shownState = JSON.stringify(status?.state);
        problems.push(
          `container ${container.name} ${isRunning ? "runs" : "does not run"}, its status says ${shownState}`,
        );
      }
      const mustRun = container.role !== "init" && container.restartPolicy === "Always";
      if (mustRun && !isOver(phase) && !isRunning) problems.push(`container ${container.name} does not run`);
      if (mustRun && isRunning && status?.ready !== true) problems.push(`container ${container.name} is not ready`);
    }
    const anyMain = containers.some(
      ({ name: each, role }) =>
        role === "main" &&
        records.some(({ config, life }) => config.metadata?.name === each && life.step === "running"),
    );
    const isBackingOff = statuses.some(({ state }) => state?.waiting?.reason === "CrashLoopBackOff");
    if (!isOver(phase) && !anyMain && !isBackingOff)
      problems.push(`pod ${name} is ${phase}, but none of its containers runs`);
    if (phase === "Pending") problems.push(`pod ${name} is Pending`);
    const isForEver =
      pod.spec?.restartPolicy === "Always" &&
      containers.some(({ role, restartPolicy }) => role === "main" && restartPolicy === "Always");
    if (isForEver && isOver(phase) && pod.spec.activeDeadlineSeconds === undefined && !witness.isTakenOff(plan)) {
      problems.push(`pod ${name} is ${phase}: ${JSON.stringify(shown.status)}`);
    }
  }
  for (const pod of apiPods) problems.push(...wrongSizes(pod, simulation), ...wrongAsAWhole(pod, simulation));
  for (const { metadata } of apiPods) {
    const uid = metadata.annotations?.["kubernetes.io/config.mirror"] ?? metadata.uid;
    if (!wantedUids.has(uid)) problems.push(`pod ${metadata.name} is still in the API`);
  }
  for (const { config } of sandboxes) {
    if (!wantedUids.has(config.metadata?.uid ?? "")) problems.push(`a sandbox of ${config.metadata?.name} is left`);
  }
  for (const { config, sandbox } of records) {
    if (!wantedUids.has(sandbox.config.metadata?.uid ?? ""))
      problems.push(`container ${config.metadata?.name} is left`);
  }
  problems.push(...leftovers(simulation, wantedUids));
  const claimsInUse = new Set([...wanted.values()].flatMap((plan) => plan.containers.map(({ claim }) => claim)));
  for (const claim of claims.prepared.values())
    if (!claimsInUse.has(claim)) problems.push(`claim ${claim} is still prepared`);
  const node = api.get(nodes, "sim") as { status?: { conditions?: { type: string; status: string }[] } } | undefined;
  const conditions = node?.status?.conditions ?? [];
  if (conditions.find(({ type }) => type === "Ready")?.status !== "True") problems.push("the node is not Ready");
  for (const { type, status } of conditions)
    if (type.endsWith("Pressure") && status !== "False") problems.push(`the node has ${type}`);
  const { life } = simulation;
  if (life !== undefined && machine.disk.openedBy(life) > 50)
    problems.push(`${machine.disk.openedBy(life)} files are open`);
  return problems;
}

/** Whatever was asked for while they ran, containers have now, and their pod with them. */
function wrongSizes({ metadata, spec, status }: Pod, { runtime }: Simulation): readonly string[] {
  const problems: string[] = [];
  const conditions = status?.conditions?.filter(({ type }) => type.startsWith("PodResize")) ?? [];
  for (const { type, reason, message } of conditions)
    problems.push(`pod ${metadata?.name} has ${type}: ${reason} ${message}`);
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  for (const { name: container, resources = {} } of [
    ...(spec?.containers ?? []),
    ...(spec?.initContainers ?? []).filter((each) => each.restartPolicy === "Always"),
  ]) {
    const shown = statuses.find((each) => each.name === container);
    const record = runtime.fake
      .containers()
      .find(({ config, life }) => config.metadata?.name === container && life.step === "running");
    if (shown?.state?.running === undefined || record === undefined) continue;
    const { requests, limits } = resources;
    if (requests?.["cpu"] === undefined) continue;
    const { requests: shownRequests, limits: shownLimits } = shown.resources ?? {};
    if (!jsonEqual({ requests: shownRequests, limits: shownLimits }, { requests, limits }))
      problems.push(
        `container ${container} asks for ${JSON.stringify(resources)}, its status says ${JSON.stringify(shown.resources)}`,
      );
    const isLimited = limits?.["memory"] !== undefined;
    const wanted = {
      shares: sharesOf(String(requests["cpu"])),
      limit: isLimited ? bytesOf(String(limits["memory"])) : undefined,
    };
    const given = {
      shares: Number(record.resources?.cpuShares),
      limit: isLimited ? Number(record.resources?.memoryLimitInBytes) : undefined,
    };
    if (JSON.stringify(wanted) !== JSON.stringify(given))
      problems.push(`container ${container} is to have ${JSON.stringify(wanted)} and has ${JSON.stringify(given)}`);
  }
  return problems;
}

/** What a pod has as a whole is what its cgroup allows, and its containers with it. */
function wrongAsAWhole({ metadata, spec, status }: Pod, { runtime, machine: { disk } }: Simulation): readonly string[] {
  const limits = spec?.resources?.limits;
  const running = runtime.fake
    .containers()
    .filter(({ life, sandbox }) => life.step === "running" && sandbox.config.metadata?.uid === metadata?.uid);
  const cgroup = running[0]?.sandbox.config.linux?.cgroupParent;
  if (limits === undefined || cgroup === undefined) return [];
  const problems: string[] = [];
  const asked = JSON.stringify(limits);
  // Since v1.35.
  const { resources } = (status ?? {}) as { readonly resources?: { readonly limits?: object } };
  const shown = JSON.stringify(resources?.limits);
  if (shown !== asked) problems.push(`pod ${metadata?.name} asks for ${asked} as a whole, its status says ${shown}`);
  const wanted = `${bytesOf(String(limits["memory"]))} ${Number.parseInt(String(limits["cpu"]), 10) * 100} 100000`;
  const read = (file: string): string => {
    const path = `/sys/fs/cgroup${cgroup}/${file}`;
    return disk.read(disk.find(path, "open"), path).toString().trim();
  };
  const given = [`${read("memory.max")} ${read("cpu.max")}`];
  for (const { resources: own } of running) given.push(`${own?.memoryLimitInBytes} ${own?.cpuQuota} ${own?.cpuPeriod}`);
  for (const each of given)
    if (each !== wanted) problems.push(`pod ${metadata?.name} is to have ${wanted} as a whole, and has ${each}`);
  return problems;
}

function sharesOf(cpu: string): number {
  return Math.max(2, Math.floor((Number.parseInt(cpu, 10) * 1024) / 1000));
}

function bytesOf(memory: string): number {
  return Number.parseInt(memory, 10) * 1024 * 1024;
}

function leftovers({ machine: { disk }, wanted }: Simulation, uids: ReadonlySet<string>): readonly string[] {
  const problems: string[] = [];
  const below = (path: string): readonly string[] => {
    const { inode } = disk.place(path, "readdir", "last");
    return inode?.type === "directory" ? [...inode.entries.keys()] : [];
  };
  for (const uid of below(`${rootDir}/pods`)) if (!uids.has(uid)) problems.push(`the directory of pod ${uid} is left`);
  for (const name of below("/var/log/pods")) {
    if (!uids.has(name.slice(name.lastIndexOf("_") + 1))) problems.push(`the logs ${name} are left`);
  }
  for (const point of disk.mountsBelow(rootDir)) {
    const uid = /\/pods\/([^/]+)\//.exec(point)?.[1];
    if (uid !== undefined && !uids.has(uid)) problems.push(`${point} is still mounted`);
  }
  const isStagingWanted = [...wanted.values()].some(({ pod }) =>
    pod.spec?.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined),
  );
  if (!isStagingWanted) {
    for (const point of disk.mountsBelow(`${rootDir}/plugins/`)) problems.push(`${point} is still staged`);
  }
  for (const path of disk.tree("/sys/fs/cgroup")) {
    const uid = /\/pod([0-9a-f-]{32,36})$/.exec(path)?.[1];
    if (uid !== undefined && !uids.has(uid)) problems.push(`cgroup ${path} is left`);
  }
  return problems;
}
