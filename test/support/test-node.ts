import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ContainerState, type ContainerStatus, CriClient, CriError } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Container, ContainerStatus as KubeContainerStatus, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { eventually, TestAgent } from "./agent.ts";
import { startContainerd, type TestContainerd } from "./containerd.ts";
import { untilTold } from "./raw-runtime.ts";

/** A private containerd with the built agent beside it, and a look inside the containers of its pods. */
export class TestNode implements AsyncDisposable {
  readonly containerd: TestContainerd;
  readonly agent: TestAgent;
  readonly cri: CriClient;

  private constructor(containerd: TestContainerd, agent: TestAgent) {
    this.containerd = containerd;
    this.agent = agent;
    const settings = { runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 };
    this.cri = new CriClient(settings, { clock: systemClock });
  }

  /**
   * `config` is laid over the KubeletConfiguration that `nodelet up` would write; `prepare` puts files where the agent
   * will find them; `flags` are given to it besides.
   */
  static async start(
    config: object = {},
    prepare: (place: { readonly rootDir: string }) => Promise<void> = async () => {},
    flags: (place: { readonly rootDir: string }) => readonly string[] = () => [],
  ): Promise<TestNode> {
    const containerd = await startContainerd();
    try {
      const rootDir = containerd.layout.agentRoot;
      await mkdir(rootDir, { recursive: true });
      await prepare({ rootDir });
      return new TestNode(containerd, await TestAgent.start(containerd, config, flags({ rootDir })));
    } catch (error) {
      await containerd[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A busybox container that runs a script. */
  shell(name: string, script: string, more: Partial<Container> = {}): Container {
    return { name, image: this.containerd.images.busybox, command: ["sh", "-c", script], ...more };
  }

  /** A container that runs until it is told to end, and then ends at once. */
  server(name: string, more: Partial<Container> = {}): Container {
    return { name, image: this.containerd.images.busybox, command: untilTold, ...more };
  }

  /** A directory of the host that a pod's containers see as /trace and write down in what they do. */
  async trace(name: string): Promise<Trace> {
    const directory = join(this.containerd.stateDir, "traces", name);
    await mkdir(directory, { recursive: true });
    return {
      directory,
      volume: { name: "trace", hostPath: { path: directory } },
      mount: { name: "trace", mountPath: "/trace" },
      async words() {
        const text = await readFile(join(directory, "words"), "utf8").catch(() => "");
        return text.split("\n").filter((line) => line !== "");
      },
    };
  }

  /** What a script prints when it is run in the container that the pod's status names. */
  async sh(pod: Pod, container: string, script: string): Promise<string> {
    const containerId = idOf(statusOf(pod, container));
    const { stdout, stderr, exitCode } = await this.cri.runtime.execSync({
      containerId,
      cmd: ["sh", "-c", script],
      timeout: 20n,
    });
    if (exitCode !== 0) throw new Error(`${script} ended with ${exitCode}: ${Buffer.from(stderr)}`);
    return Buffer.from(stdout).toString().trimEnd();
  }

  /** Sends SIGTERM to the first process of a container, as if it had been stopped by somebody else. */
  async terminate(pod: Pod, container: string): Promise<void> {
    // The command may be taken down with the container before it can say how it went.
    await this.sh(pod, container, "kill -TERM 1").catch(() => {});
  }

  /** All the runtime has of a pod's container of this name, newest first. */
  async instances(pod: Pod, container: string): Promise<readonly ContainerStatus[]> {
    const labelSelector = {
      "io.kubernetes.pod.uid": pod.metadata?.uid ?? "",
      "io.kubernetes.container.name": container,
    };
    const filter = { id: "", state: undefined, podSandboxId: "", labelSelector };
    const { containers } = await this.cri.runtime.listContainers({ filter });
    const found: ContainerStatus[] = [];
    for (const { id } of containers) {
      try {
        const { status } = await this.cri.runtime.containerStatus({ containerId: id, verbose: false });
        if (status !== undefined) found.push(status);
      } catch (error) {
        // The agent removes the older ones, and may do so just after we were told of them.
        if (!(error instanceof CriError && error.code === "NotFound")) throw error;
      }
    }
    return found.sort((a, b) => Number(b.createdAt - a.createdAt));
  }

  /** Names of the containers that the runtime runs now, as "pod/container", in order. */
  async running(): Promise<readonly string[]> {
    const { containers } = await this.cri.runtime.listContainers({ filter: undefined });
    return containers
      .filter(({ state }) => state === ContainerState.CONTAINER_RUNNING)
      .map(({ labels, metadata }) => `${labels["io.kubernetes.pod.name"]}/${metadata?.name}`)
      .sort();
  }

  /** Waits until the agent's log has a line with all of these words. */
  async untilLogged(...words: readonly string[]): Promise<string> {
    return eventually(async () => (await this.logged(...words)).at(-1), `a log line with ${words.join(", ")}`, 60_000);
  }

  /** The lines of the agent's log with all of these words. */
  async logged(...words: readonly string[]): Promise<readonly string[]> {
    const lines = (await this.agent.log()).split("\n");
    return lines.filter((line) => words.every((word) => line.includes(word)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cri.close();
    await this.agent[Symbol.asyncDispose]();
    await this.containerd[Symbol.asyncDispose]();
  }
}

export interface Trace {
  readonly directory: string;
  readonly volume: NonNullable<PodSpec["volumes"]>[number];
  readonly mount: NonNullable<Container["volumeMounts"]>[number];
  /** The lines of /trace/words. */
  words(): Promise<readonly string[]>;
}

/** The status of one container of a pod, of whatever kind. */
export function statusOf(pod: Pod, container: string): KubeContainerStatus {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  const all = [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
  const found = all.find(({ name }) => name === container);
  if (found === undefined) throw new Error(`the status of ${pod.metadata?.name} has no container ${container}`);
  return found;
}

/** The runtime's id of the container. */
export function idOf({ name, containerID }: KubeContainerStatus): string {
  const [, id] = /^containerd:\/\/(.+)$/.exec(containerID ?? "") ?? [];
  if (id === undefined) throw new Error(`container ${name} has no id of containerd's: ${containerID}`);
  return id;
}

export function conditionOf(pod: Pod, type: string): string | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)?.status;
}

export function isOver({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}
