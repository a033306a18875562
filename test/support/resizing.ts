import type { FakeRuntime } from "../../src/beside/hollow/index.ts";
import { type CallOptions, CriError } from "../../src/connections/cri/index.ts";
import { type Clock, withDeadline } from "../../src/ground/base/index.ts";
import type { Container, IdentifiedPod, PodCondition, PodSpec } from "../../src/ground/model/index.ts";
import { enginePod, TestEngine, type TestEngineOptions } from "./test-engine.ts";

export interface Amounts {
  readonly cpu?: string;
  readonly memory?: string;
}

export const both = (requests: Amounts, limits: Amounts = requests): NonNullable<Container["resources"]> => ({
  requests: { ...requests },
  limits: { ...limits },
});
export const container = (
  name: string,
  resources: Container["resources"],
  more: Partial<Container> = {},
): Container => ({
  name,
  image: "busybox:1",
  ...(resources === undefined ? {} : { resources }),
  ...more,
});
export const restartFor = (...names: readonly string[]): Partial<Container> => ({
  resizePolicy: names.map((resourceName) => ({ resourceName, restartPolicy: "RestartContainer" })),
});
export const pod = (
  containers: readonly Container[],
  generation: number,
  { name = "web", ...more }: Partial<PodSpec> & { readonly name?: string } = {},
): IdentifiedPod => enginePod(name, { ...more, containers }, { generation });

export const conditions = (node: TestEngine, uid = "web"): readonly PodCondition[] =>
  (node.status(uid).conditions ?? []).filter(({ type }) => type.startsWith("PodResize"));
/** Everything that a resize does, in order: what the runtime is told, and what becomes of the pod's cgroup. */
export function watched(node: TestEngine): readonly string[] {
  return node.cgroupChanges;
}

/** A node whose runtime notes what it is told among the changes of cgroups. */
export async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  const changes: { list: string[] | undefined } = { list: undefined };
  const node = await TestEngine.start({
    source: "api",
    ...options,
    answers: (runtime) => ({
      ...(options.answers?.(runtime) ?? runtime),
      updateContainerResources: async (request, call) => {
        const { cpuQuota, cpuShares, memoryLimitInBytes } = request.linux ?? {};
        const name = node.runtime.containers().find(({ id }) => id === request.containerId)?.config.metadata?.name;
        changes.list?.push(`${name}: ${Number(memoryLimitInBytes) / mi} Mi, ${cpuQuota} us, ${cpuShares} shares`);
        return await (options.answers?.(runtime) ?? runtime).updateContainerResources(request, call);
      },
    }),
  });
  changes.list = node.cgroupChanges;
  return node;
}

/** The runtime as its client shows it: one operation is not waited for for ever. */
export function impatient(
  runtime: FakeRuntime["runtime"],
  operation: "updateContainerResources" | "containerStats" | "containerStatus",
  clock: () => Clock,
): FakeRuntime["runtime"] {
  const call = runtime[operation] as (request: unknown, options: CallOptions) => Promise<unknown>;
  const late = (): Error => new CriError("DeadlineExceeded", operation, "context deadline exceeded");
  const bounded = (request: unknown, { signal = new AbortController().signal }: CallOptions): Promise<unknown> =>
    withDeadline(clock(), 120_000, late, signal, (within) => call(request, { signal: within }));
  return { ...runtime, [operation]: bounded };
}

export const mi = 1024 * 1024;

/** What the runtime has of the running container. */
export function given(node: TestEngine, name: string): object {
  const found = node.runtime
    .containers()
    .find(({ config, life }) => config.metadata?.name === name && life.step === "running");
  const { cpuShares, cpuQuota, memoryLimitInBytes } = found?.resources ?? {};
  return { shares: Number(cpuShares), quota: Number(cpuQuota), memory: Number(memoryLimitInBytes) };
}
