import assert from "node:assert/strict";
import { resources } from "../../../src/connections/kube/index.ts";
import type { Container, Pod, PodSpec } from "../../../src/ground/model/index.ts";
import { eventually, isReady } from "../agent.ts";
import type { ClusterPods, PodWatch } from "../cluster-pods.ts";
import { soon } from "../until.ts";
import { kernelLimits, limitsOf } from "./kernel-limits.ts";
import {
  containerStatus,
  hasSettled,
  type ResizePolicy,
  resizable,
  resize,
  resizeConditions,
  runtimeId,
} from "./resizing.ts";
import {
  burstableBase,
  burstableSteps,
  guaranteedBase,
  guaranteedSteps,
  type Step,
  same,
  sumOf,
  type Wish,
} from "./wishes.ts";

/** A kind of pod that goes through all steps. */
export interface Shape {
  readonly name: string;
  readonly base: Wish;
  readonly steps: readonly Step[];
  readonly containers: readonly string[];
  readonly sidecar?: string;
  /** Has a piece of a resource that this node counts and nothing else. */
  readonly extended?: true;
}

const guaranteed = { base: guaranteedBase, steps: guaranteedSteps };
const burstable = { base: burstableBase, steps: burstableSteps };

export const shapes: readonly Shape[] = [
  { name: "guaranteed", ...guaranteed, containers: ["main"] },
  { name: "guaranteed-three", ...guaranteed, containers: ["main", "two", "three"] },
  { name: "guaranteed-extended", ...guaranteed, containers: ["main"], extended: true },
  { name: "burstable", ...burstable, containers: ["main"] },
  { name: "burstable-three", ...burstable, containers: ["main", "two", "three"] },
  { name: "burstable-extended", ...burstable, containers: ["main"], extended: true },
  { name: "sidecar", ...burstable, containers: ["main"], sidecar: "side" },
  { name: "guaranteed-sidecar", ...guaranteed, containers: ["main"], sidecar: "side" },
];

export const policies: readonly ResizePolicy[] = ["NotRequired", "RestartContainer"];

const dongle = "example.com/dongle";

/** The administrator counts something that no plugin tells of. */
export async function countDongles(cluster: ClusterPods, count: number): Promise<void> {
  const body = { status: { capacity: { [dongle]: String(count) }, allocatable: { [dongle]: String(count) } } };
  const ref = { name: "test-node", subresource: "status" };
  await eventually(
    () => cluster.admin.patch(resources.nodes, ref, { type: "merge", body }, soon()),
    "the node is there",
    60_000,
  );
}

/** What containers have that are not resized. */
const other: Wish = same(50, 32);

export interface Walk {
  readonly cluster: ClusterPods;
  readonly watch: PodWatch;
  readonly image: string;
}

/** The first container (or the sidecar) goes through the steps; what the others have stays what it is. */
export async function walk({ cluster, watch, image }: Walk, shape: Shape, policy: ResizePolicy): Promise<number> {
  const { containers, sidecar, steps, base } = shape;
  const name = `${shape.name}-${policy.toLowerCase()}`;
  const resized = sidecar ?? containers[0] ?? "";
  const others = [...containers, ...(sidecar === undefined ? [] : [sidecar])].filter((each) => each !== resized);
  await cluster.create(name, specOf(image, shape, resized, policy));
  await cluster.until(name, "ready", isReady);
  let restarts = 0;
  for (const { what, wish } of steps) {
    const seen = watch.versions(name).length;
    await resize(cluster, name, { [resized]: wish });
    if (policy === "RestartContainer") restarts++;
    const shown = await cluster.until(name, what, (found) => hasSettled(found, resized, wish, restarts));
    const { uid = "", generation } = shown.metadata ?? {};
    assert.equal(containerStatus(shown, resized)?.restartCount, restarts, `restarts of ${name}: ${what}`);
    assert.deepEqual(kernelLimits(uid, runtimeId(shown, resized)), limitsOf(wish), `${name}: ${what}`);
    for (const each of others) {
      assert.equal(containerStatus(shown, each)?.restartCount, 0, `restarts of ${each} of ${name}: ${what}`);
      assert.deepEqual(kernelLimits(uid, runtimeId(shown, each)), limitsOf(other), `${each} of ${name}: ${what}`);
    }
    assert.deepEqual(
      kernelLimits(uid),
      limitsOf(sumOf([wish, ...others.map(() => other)])),
      `${name} as a whole: ${what}`,
    );
    if (shape.extended) assert.equal(containerStatus(shown, resized)?.allocatedResources?.[dongle], "1");
    assertOrder(watch.versions(name).slice(seen), generation, `${name}: ${what}`);
  }
  assert.equal(restarts, policy === "RestartContainer" ? steps.length : 0);
  assert.notDeepEqual(base, steps.at(-1)?.wish);
  await cluster.delete(name);
  await cluster.untilGone(name);
  return steps.length;
}

/** A resize that fits is under way, for its version of the spec, and then done: it never waits and never fails. */
function assertOrder(versions: readonly Pod[], generation: number | undefined, what: string): void {
  const told = versions.map(resizeConditions);
  const first = told.findIndex((conditions) => conditions.length > 0);
  const last = told.findLastIndex((conditions) => conditions.length > 0);
  for (const conditions of told.slice(Math.max(first, 0), last + 1)) {
    assert.deepEqual(conditions, ["PodResizeInProgress"], what);
  }
  for (const { status } of versions) {
    const progress = status?.conditions?.find(({ type }) => type === "PodResizeInProgress");
    if (progress !== undefined) assert.equal(progress.observedGeneration, generation, what);
  }
}

function specOf(image: string, shape: Shape, resized: string, policy: ResizePolicy): Partial<PodSpec> {
  const { containers, sidecar, base, extended } = shape;
  const made = (name: string, more: Partial<Container> = {}): Container => {
    const container = resizable(image, name, name === resized ? base : other, policy, more);
    if (extended !== true || name !== resized) return container;
    const { requests, limits } = container.resources ?? {};
    return {
      ...container,
      resources: { requests: { ...requests, [dongle]: "1" }, limits: { ...limits, [dongle]: "1" } },
    };
  };
  return {
    ...(sidecar === undefined ? {} : { initContainers: [made(sidecar, { restartPolicy: "Always" })] }),
    containers: containers.map((name) => made(name)),
    terminationGracePeriodSeconds: 1,
  };
}
