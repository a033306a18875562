import type { Service } from "../../../ground/model/index.ts";
import type { ApiObject } from "../object.ts";
import type { Strategy, World } from "../rest/world.ts";
import { StatusError } from "../status-error.ts";

type ServiceSpec = NonNullable<Service["spec"]>;

const resource = "services";

/** Services get an address of their own, although nothing on this machine routes it. */
export const serviceStrategy: Strategy = {
  admitCreate: (object, world) => ({
    ...object,
    spec: withDefaults(specOf(object), world),
    status: { loadBalancer: {} },
  }),
  admitUpdate(object, old, world) {
    const { clusterIP, clusterIPs } = specOf(old);
    const kept = specOf(object).clusterIP ? {} : { clusterIP, clusterIPs };
    return { ...object, spec: withDefaults({ ...specOf(object), ...kept }, world) };
  },
};

function specOf(object: ApiObject): ServiceSpec {
  return (object as unknown as Service).spec ?? {};
}

function withDefaults(spec: ServiceSpec, world: World): ServiceSpec {
  const type = spec.type || "ClusterIP";
  const filled: ServiceSpec = {
    ...spec,
    type,
    sessionAffinity: spec.sessionAffinity || "None",
    ...(spec.ports && {
      ports: spec.ports.map((port) => ({
        ...port,
        protocol: port.protocol || "TCP",
        targetPort: port.targetPort ?? port.port,
      })),
    }),
  };
  if (type === "ExternalName") return filled;
  const clusterIP = spec.clusterIP || freeAddress(world);
  return {
    ...filled,
    clusterIP,
    clusterIPs: spec.clusterIPs ?? [clusterIP],
    ipFamilies: spec.ipFamilies ?? ["IPv4"],
    ipFamilyPolicy: spec.ipFamilyPolicy || "SingleStack",
    internalTrafficPolicy: spec.internalTrafficPolicy || "Cluster",
  };
}

/** The first one of 10.96.0.0/16 that no service has; the very first is the API's. */
function freeAddress(world: World): string {
  const taken = new Set(world.store.list(resource).map((object) => specOf(object).clusterIP));
  for (let number = 2; number < 65_535; number++) {
    const address = `10.96.${number >> 8}.${number & 255}`;
    if (!taken.has(address)) return address;
  }
  throw new StatusError(500, "InternalError", "Internal error occurred: failed to allocate a serviceIP: range is full");
}
