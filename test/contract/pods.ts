import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ContainerConfig,
  ContainerFilter,
  ContainerState,
  type ContainerStatus,
  CriError,
  type ImageService,
  NamespaceMode,
  PodSandboxConfig,
  PodSandboxFilter,
  type PodSandboxStatus,
  type RuntimeService,
} from "../../src/connections/cri/index.ts";
import type { ContractSubject } from "./cri-contract.ts";

export interface Pod {
  readonly id: string;
  readonly config: PodSandboxConfig;
}

interface SandboxChoice {
  readonly attempt?: number;
  readonly labels?: Record<string, string>;
  readonly network?: NamespaceMode;
}

interface ContainerChoice {
  readonly attempt?: number;
  readonly labels?: Record<string, string>;
  readonly mounts?: { containerPath: string; hostPath: string }[];
  readonly cpuShares?: bigint;
}

/** Short ways to make pods on the runtime under test. Every pod has its own name, so tests do not meet. */
export class Pods {
  #subject: ContractSubject | undefined;
  #count = 0;

  use(subject: ContractSubject): void {
    this.#subject = subject;
  }

  get subject(): ContractSubject {
    assert.ok(this.#subject !== undefined, "the runtime under test has not started");
    return this.#subject;
  }

  get runtime(): RuntimeService {
    return this.subject.runtime;
  }

  get images(): ImageService {
    return this.subject.images;
  }

  async config(
    name = `pod-${++this.#count}`,
    { attempt = 0, labels = {}, network = NamespaceMode.POD }: SandboxChoice = {},
  ) {
    const logDirectory = join(this.subject.directory, name);
    await mkdir(join(logDirectory, "main"), { recursive: true });
    return PodSandboxConfig.fromPartial({
      metadata: { name, namespace: "contract", uid: `uid-${name}`, attempt },
      hostname: network === NamespaceMode.NODE ? "" : name,
      logDirectory,
      labels: { "io.kubernetes.pod.uid": `uid-${name}`, ...labels },
      annotations: { note: "kept as it is" },
      linux: {
        cgroupParent: `${this.subject.cgroupParent}/${name}`,
        securityContext: { namespaceOptions: { network, pid: NamespaceMode.CONTAINER } },
      },
    });
  }

  async run(choice: SandboxChoice & { readonly name?: string } = {}): Promise<Pod> {
    const config = await this.config(choice.name, choice);
    const { podSandboxId } = await this.runtime.runPodSandbox({ config, runtimeHandler: "" });
    return { id: podSandboxId, config };
  }

  containerConfig(command: readonly string[], choice: ContainerChoice = {}): ContainerConfig {
    const { attempt = 0, labels = {}, mounts = [], cpuShares = 2n } = choice;
    return ContainerConfig.fromPartial({
      metadata: { name: "main", attempt },
      image: { image: this.subject.image },
      command: [...command],
      logPath: `main/${attempt}.log`,
      labels: { role: "test", ...labels },
      annotations: { "io.kubernetes.container.hash": "abc" },
      mounts,
      linux: {
        resources: { cpuShares },
        securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } },
      },
    });
  }

  async create(pod: Pod, command: readonly string[], choice: ContainerChoice = {}): Promise<string> {
    const config = this.containerConfig(command, choice);
    const request = { podSandboxId: pod.id, config, sandboxConfig: pod.config };
    return (await this.runtime.createContainer(request)).containerId;
  }

  async start(pod: Pod, command: readonly string[], choice: ContainerChoice = {}): Promise<string> {
    const containerId = await this.create(pod, command, choice);
    await this.runtime.startContainer({ containerId });
    return containerId;
  }

  /** Starts a program that says "ready" once it hears signals as the test wants: before that, any signal would end it. */
  async startListening(pod: Pod, command: readonly string[]): Promise<string> {
    const containerId = await this.start(pod, command);
    const log = join(pod.config.logDirectory, "main/0.log");
    await eventually(async () => (/ F ready$/m.test(await readFile(log, "utf8").catch(() => "")) ? true : undefined));
    return containerId;
  }

  async remove(pod: Pod): Promise<void> {
    await this.runtime.removePodSandbox({ podSandboxId: pod.id });
  }

  async sandboxStatus(podSandboxId: string): Promise<PodSandboxStatus> {
    const { status } = await this.runtime.podSandboxStatus({ podSandboxId, verbose: false });
    assert.ok(status !== undefined);
    return status;
  }

  async status(containerId: string): Promise<ContainerStatus> {
    const { status } = await this.runtime.containerStatus({ containerId, verbose: false });
    assert.ok(status !== undefined);
    return status;
  }

  async untilExited(containerId: string): Promise<ContainerStatus> {
    return await eventually(async () => {
      const status = await this.status(containerId);
      return status.state === ContainerState.CONTAINER_EXITED ? status : undefined;
    });
  }

  async listedIds(filter: Parameters<typeof ContainerFilter.fromPartial>[0]): Promise<string[]> {
    const { containers } = await this.runtime.listContainers({ filter: ContainerFilter.fromPartial(filter) });
    return containers.map(({ id }) => id).sort();
  }

  async listedSandboxIds(filter: Parameters<typeof PodSandboxFilter.fromPartial>[0]): Promise<string[]> {
    const { items } = await this.runtime.listPodSandbox({ filter: PodSandboxFilter.fromPartial(filter) });
    return items.map(({ id }) => id).sort();
  }
}

/** Asks until there is an answer; the runner's own time limit ends a vain wait. */
export async function eventually<Value>(look: () => Promise<Value | undefined>): Promise<Value> {
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
    await sleep(20);
  }
}

export function fails(code: string, message?: RegExp) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof CriError, `want a CriError, found ${String(error)}`);
    assert.equal(error.code, code, error.message);
    if (message !== undefined) assert.match(error.message, message);
    return true;
  };
}
