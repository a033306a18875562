// What is special about some kinds; all others are stored as they come.
import { table } from "../../../ground/base/index.ts";
import type { Kind } from "../kinds/index.ts";
import type { Strategy } from "../rest/world.ts";
import { configMapStrategy, secretStrategy } from "./data-objects.ts";
import { eventStrategy } from "./events.ts";
import { claimStrategy, namespaceStrategy, nodeStrategy, resourceSliceStrategy, volumeStrategy } from "./others.ts";
import { ownCsiNode, ownLease } from "./own-objects.ts";
import { podStrategy } from "./pods.ts";
import { serviceStrategy } from "./services.ts";
import { signingRequestStrategy } from "./signing-requests.ts";

export { contentsOf } from "./others.ts";

const strategies: Readonly<Record<string, Strategy>> = table({
  pods: podStrategy,
  nodes: nodeStrategy,
  namespaces: namespaceStrategy,
  configmaps: configMapStrategy,
  secrets: secretStrategy,
  services: serviceStrategy,
  certificatesigningrequests: signingRequestStrategy,
  events: eventStrategy,
  leases: ownLease,
  csinodes: ownCsiNode,
  persistentvolumeclaims: claimStrategy,
  persistentvolumes: volumeStrategy,
  resourceslices: resourceSliceStrategy,
});

const plain: Strategy = {};

export function strategyOf(kind: Kind): Strategy {
  return strategies[kind.storage] ?? plain;
}
