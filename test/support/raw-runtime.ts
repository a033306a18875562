import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ContainerConfig, CriClient, PodSandboxConfig } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { TestContainerd } from "./containerd.ts";

/** What an agent can't do without: the bare CRI calls of a pod, with a description as complete as an agent's. */
export class RawRuntime implements Disposable {
  readonly cri: CriClient;
  readonly #containerd: TestContainerd;

  constructor(containerd: TestContainerd) {
    this.#containerd = containerd;
    const settings = { runtimeEndpoint: containerd.endpoint, imageEndpoint: "", requestTimeoutMs: 120_000 };
    this.cri = new CriClient(settings, { clock: systemClock });
  }

  /** Resolves when the runtime says that the container runs. */
  async start(name: string, command: readonly string[]): Promise<RawPod> {
    const { runtime } = this.cri;
    const files = await this.#files(name);
    const sandbox = PodSandboxConfig.fromPartial({
      metadata: { name, namespace: "raw", uid: name, attempt: 0 },
      hostname: name,
      logDirectory: files.logs,
      dnsConfig: { servers: ["127.0.0.1"], searches: [], options: [] },
      labels: { "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "raw", "io.kubernetes.pod.uid": name },
      linux: {
        cgroupParent: this.#containerd.cgroupRoot,
        securityContext: { namespaceOptions: { pid: 1 }, seccomp: { profileType: 0 } },
      },
    });
    const { podSandboxId: sandboxId } = await runtime.runPodSandbox({ config: sandbox, runtimeHandler: "" });
    const config = ContainerConfig.fromPartial({
      metadata: { name: "main", attempt: 0 },
      image: { image: this.#containerd.images.busybox },
      command: [...command],
      labels: { "io.kubernetes.pod.uid": name, "io.kubernetes.container.name": "main" },
      logPath: "main/0.log",
      mounts: [
        { containerPath: "/etc/hosts", hostPath: files.hosts },
        { containerPath: "/dev/termination-log", hostPath: files.termination },
      ],
      linux: { resources: { cpuPeriod: 100_000n, cpuShares: 2n }, securityContext: { namespaceOptions: { pid: 1 } } },
    });
    const created = await runtime.createContainer({ podSandboxId: sandboxId, config, sandboxConfig: sandbox });
    await runtime.startContainer({ containerId: created.containerId });
    const { status } = await runtime.containerStatus({ containerId: created.containerId, verbose: false });
    if (status?.startedAt === 0n) throw new Error(`${name} was started but does not run`);
    return { sandboxId, containerId: created.containerId };
  }

  /** Resolves when the runtime has forgotten the pod. */
  async stop({ sandboxId, containerId }: RawPod, graceSeconds: number): Promise<void> {
    const { runtime } = this.cri;
    await runtime.stopContainer({ containerId, timeout: BigInt(graceSeconds) });
    await runtime.stopPodSandbox({ podSandboxId: sandboxId });
    await runtime.removeContainer({ containerId });
    await runtime.removePodSandbox({ podSandboxId: sandboxId });
  }

  /** Where what the container writes to /dev/termination-log ends up. */
  terminationFile(name: string): string {
    return join(this.#containerd.stateDir, "raw", name, "termination");
  }

  async #files(name: string): Promise<{ logs: string; hosts: string; termination: string }> {
    const directory = join(this.#containerd.stateDir, "raw", name);
    const logs = join(directory, "logs");
    await mkdir(join(logs, "main"), { recursive: true });
    const [hosts, termination] = [join(directory, "hosts"), join(directory, "termination")];
    await writeFile(hosts, "127.0.0.1\tlocalhost\n");
    await writeFile(termination, "");
    return { logs, hosts, termination };
  }

  [Symbol.dispose](): void {
    this.cri.close();
  }
}

export interface RawPod {
  readonly sandboxId: string;
  readonly containerId: string;
}

/** A container that runs until it is told to end, and then ends at once. */
export const untilTold: readonly string[] = ["sh", "-c", 'trap "exit 0" TERM; sleep 1d & wait'];
