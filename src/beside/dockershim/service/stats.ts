import { type ContainerFilter, ContainerStats, PodSandboxStats } from "../../../connections/cri/index.ts";
import type { CgroupReader } from "../../../connections/host/index.ts";
import { readCgroupOf, readNetworkOf } from "../../../connections/host/index.ts";
import { aFewAtOnce, mapAtMost } from "../../../ground/base/index.ts";
import type { InspectedContainer } from "../engine/index.ts";
import { givenTexts } from "../mapping/labels.ts";
import { parseName } from "../mapping/names.ts";
import type { DockerContainers } from "./containers.ts";
import type { ShimContext } from "./context.ts";
import type { LayerSizes } from "./layer-sizes.ts";
import type { DockerSandboxes } from "./sandboxes.ts";

export interface DockerStatsPorts {
  readonly context: ShimContext;
  readonly containers: DockerContainers;
  readonly sandboxes: DockerSandboxes;
  readonly cgroups: CgroupReader;
  readonly sizes: LayerSizes;
}

const everything: ContainerFilter = { id: "", podSandboxId: "", labelSelector: {}, state: undefined };

/** What containers use, read from the kernel: Docker itself takes seconds to tell, and half of one's CPUs for many. */
export class Stats {
  readonly #ports: DockerStatsPorts;

  constructor(ports: DockerStatsPorts) {
    this.#ports = ports;
  }

  async container(id: string, signal: AbortSignal): Promise<ContainerStats> {
    return await this.#of(await this.#ports.containers.find("containerStats", id, signal), signal);
  }

  async list(filter: ContainerFilter | undefined, signal: AbortSignal): Promise<ContainerStats[]> {
    return [...(await this.#bySandbox(filter, signal)).values()].flat();
  }

  async sandbox(asked: string, signal: AbortSignal): Promise<PodSandboxStats> {
    const found = await this.#ports.sandboxes.find("podSandboxStats", asked, signal);
    return this.#ofSandbox(found, await this.list({ ...everything, podSandboxId: found.id }, signal));
  }

  /** In one go for all of them: Docker is asked once for the list, and about a few containers at a time. */
  async #bySandbox(filter: ContainerFilter | undefined, signal: AbortSignal): Promise<Map<string, ContainerStats[]>> {
    const found = new Map<string, ContainerStats[]>();
    const listed = await this.#ports.containers.list(filter, signal);
    await mapAtMost(aFewAtOnce, listed, async ({ id, podSandboxId }) => {
      const look = await this.#ports.context.looks.at(id, signal);
      if (look.type !== "found") return;
      const stats = await this.#of(look.container, signal);
      found.set(podSandboxId, [...(found.get(podSandboxId) ?? []), stats]);
    });
    return found;
  }

  #ofSandbox(sandbox: InspectedContainer, containers: ContainerStats[]): PodSandboxStats {
    const name = parseName(sandbox.name);
    const timestamp = this.#ports.context.stamp();
    const cgroup = sandbox.state.running ? readCgroupOf(sandbox.state.pid) : undefined;
    // What Docker makes for a container lies below the pod's.
    const pod = cgroup?.slice(0, cgroup.lastIndexOf("/"));
    const tasks = pod === undefined ? undefined : this.#ports.cgroups.tasks(pod);
    return PodSandboxStats.fromPartial({
      attributes: {
        id: sandbox.id,
        metadata:
          name === undefined ? {} : { name: name.pod, namespace: name.namespace, uid: name.uid, attempt: name.attempt },
        ...givenTexts(sandbox.labels),
      },
      linux: {
        ...(pod !== undefined && this.#usage(pod, timestamp)),
        ...(sandbox.state.running && { network: networkOf(sandbox.state.pid, timestamp) }),
        ...(tasks !== undefined && { process: { timestamp, processCount: { value: BigInt(tasks) } } }),
        containers,
      },
    });
  }

  async listSandboxes(
    fits: (id: string, labels: Readonly<Record<string, string>>) => boolean,
    signal: AbortSignal,
  ): Promise<PodSandboxStats[]> {
    const ready = (await this.#ports.sandboxes.listed(signal)).filter(
      ({ id, labels, state }) => state === "running" && fits(id, labels),
    );
    const containers = await this.#bySandbox(undefined, signal);
    const stats = await mapAtMost(aFewAtOnce, ready, async ({ id }) => {
      const look = await this.#ports.context.looks.at(id, signal);
      return look.type === "found" ? this.#ofSandbox(look.container, containers.get(id) ?? []) : undefined;
    });
    return stats.filter((one) => one !== undefined);
  }

  async #of(container: InspectedContainer, signal: AbortSignal): Promise<ContainerStats> {
    const { context, sizes } = this.#ports;
    const timestamp = context.stamp();
    const name = parseName(container.name);
    const cgroup = container.state.running ? readCgroupOf(container.state.pid) : undefined;
    const written = sizes.of(container.id);
    const { rootDir } = await context.facts.info(signal);
    return ContainerStats.fromPartial({
      attributes: {
        id: container.id,
        metadata: name === undefined ? {} : { name: name.container, attempt: name.attempt },
        ...givenTexts(container.labels),
      },
      ...(cgroup !== undefined && this.#usage(cgroup, timestamp)),
      writableLayer: {
        timestamp: written?.at ?? timestamp,
        fsId: { mountpoint: rootDir },
        ...(written !== undefined && { usedBytes: { value: BigInt(written.bytes) } }),
      },
    });
  }

  #usage(cgroup: string, timestamp: bigint) {
    const { cpu, memory } = this.#ports.cgroups.usage(cgroup);
    const value = (amount: number) => ({ value: BigInt(Math.trunc(amount)) });
    return {
      ...(cpu !== undefined && { cpu: { timestamp, usageCoreNanoSeconds: value(cpu.usageNanoseconds) } }),
      ...(memory !== undefined && {
        memory: {
          timestamp,
          workingSetBytes: value(memory.workingSetBytes),
          usageBytes: value(memory.usageBytes),
          rssBytes: value(memory.rssBytes),
          pageFaults: value(memory.pageFaults),
          majorPageFaults: value(memory.majorPageFaults),
          ...(memory.limitBytes !== undefined && {
            availableBytes: value(Math.max(memory.limitBytes - memory.workingSetBytes, 0)),
          }),
        },
        swap: { timestamp, swapUsageBytes: value(memory.swapBytes) },
      }),
    };
  }
}

function networkOf(pid: number, timestamp: bigint) {
  const interfaces = readNetworkOf(pid).map((one) => ({
    name: one.name,
    rxBytes: { value: BigInt(one.rxBytes) },
    rxErrors: { value: BigInt(one.rxErrors) },
    txBytes: { value: BigInt(one.txBytes) },
    txErrors: { value: BigInt(one.txErrors) },
  }));
  const defaultInterface = interfaces.find(({ name }) => name === "eth0") ?? interfaces[0];
  return { timestamp, ...(defaultInterface !== undefined && { defaultInterface }), interfaces };
}
