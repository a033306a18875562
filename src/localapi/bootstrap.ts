import { serverOptions } from "./controllers/namespaces.ts";
import { type Kind, namespaces, priorityClasses } from "./kinds/index.ts";
import { createObject } from "./rest/create.ts";
import type { World } from "./rest/world.ts";

/** What is in every cluster from the start. */
export function bootstrap(world: World): void {
  for (const name of ["default", "kube-system", "kube-public", "kube-node-lease"]) {
    ensure(world, namespaces, { metadata: { name } });
  }
  for (const [name, value] of [
    ["system-cluster-critical", 2_000_000_000],
    ["system-node-critical", 2_000_001_000],
  ] as const) {
    ensure(world, priorityClasses, { metadata: { name }, value, preemptionPolicy: "PreemptLowerPriority" });
  }
}

function ensure(world: World, kind: Kind, object: { metadata: { name: string }; [key: string]: unknown }): void {
  if (world.store.get(kind.storage, object.metadata.name) !== undefined) return;
  createObject(world, kind, "", object, serverOptions);
}
