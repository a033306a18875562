import { serverOptions } from "./controllers/namespaces.ts";
import { type Kind, kinds, namespaces, priorityClasses } from "./kinds/index.ts";
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

/** How pods find the API: at its real address, since nothing routes cluster addresses on one machine. */
export function announceApi(world: World, host: string, port: number): void {
  const services = kinds.find(({ plural }) => plural === "services");
  if (services === undefined) return;
  world.store.delete(services.storage, "default/kubernetes");
  const metadata = { name: "kubernetes", labels: { component: "apiserver", provider: "kubernetes" } };
  const spec = { clusterIP: host, ports: [{ name: "https", port, targetPort: port, protocol: "TCP" }] };
  createObject(world, services, "default", { metadata, spec }, serverOptions);
}

function ensure(world: World, kind: Kind, object: { metadata: { name: string }; [key: string]: unknown }): void {
  if (world.store.get(kind.storage, object.metadata.name) !== undefined) return;
  createObject(world, kind, "", object, serverOptions);
}
