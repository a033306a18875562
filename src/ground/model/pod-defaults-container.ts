import { defaultPullPolicy } from "./image-reference.ts";
import type {
  Container,
  ContainerPort,
  EnvVar,
  EphemeralContainer,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  ObjectFieldSelector,
  Probe,
  Quantity,
  ResourceRequirements,
} from "./kube/gen/types.ts";
import { tryParseQuantity } from "./quantity.ts";
import { formatOf, formatQuantity } from "./quantity-format.ts";

export function defaultContainer(container: Container, hostNetwork: boolean): Container {
  const common = defaultCommon(container, hostNetwork);
  return container.resources === undefined
    ? common
    : { ...common, resources: requestsFromLimits(roundedResources(container.resources)) };
}

/** Ephemeral containers get no requests from limits: they may have neither. */
export function defaultEphemeralContainer(container: EphemeralContainer): EphemeralContainer {
  return defaultCommon(container, false);
}

function defaultCommon<Kind extends Container>(container: Kind, hostNetwork: boolean): Kind {
  const { env, ports, lifecycle, livenessProbe, readinessProbe, startupProbe, resources } = container;
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy || defaultPullPolicy(container.image ?? ""),
    terminationMessagePath: container.terminationMessagePath || "/dev/termination-log",
    terminationMessagePolicy: container.terminationMessagePolicy || "File",
    ...(ports && { ports: ports.map((port) => defaultPort(port, hostNetwork)) }),
    ...(env && { env: env.map(defaultEnv) }),
    ...(lifecycle && { lifecycle: defaultLifecycle(lifecycle) }),
    ...(livenessProbe && { livenessProbe: defaultProbe(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: defaultProbe(readinessProbe) }),
    ...(startupProbe && { startupProbe: defaultProbe(startupProbe) }),
    ...(resources && { resources: roundedResources(resources) }),
  };
}

function defaultPort(port: ContainerPort, hostNetwork: boolean): ContainerPort {
  return {
    ...port,
    protocol: port.protocol || "TCP",
    ...(hostNetwork && { hostPort: port.hostPort || port.containerPort }),
  };
}

function defaultEnv(variable: EnvVar): EnvVar {
  const fieldRef = variable.valueFrom?.fieldRef;
  if (fieldRef === undefined) return variable;
  return { ...variable, valueFrom: { ...variable.valueFrom, fieldRef: defaultFieldRef(fieldRef) } };
}

export function defaultFieldRef(selector: ObjectFieldSelector): ObjectFieldSelector {
  return { ...selector, apiVersion: selector.apiVersion || "v1" };
}

function defaultProbe(probe: Probe): Probe {
  const { httpGet, grpc } = probe;
  return {
    ...probe,
    ...(httpGet && { httpGet: defaultHttpGet(httpGet) }),
    ...(grpc && { grpc: { ...grpc, service: grpc.service ?? "" } }),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

function defaultLifecycle(lifecycle: Lifecycle): Lifecycle {
  const { postStart, preStop } = lifecycle;
  return {
    ...lifecycle,
    ...(postStart && { postStart: defaultHandler(postStart) }),
    ...(preStop && { preStop: defaultHandler(preStop) }),
  };
}

function defaultHandler(handler: LifecycleHandler): LifecycleHandler {
  return handler.httpGet === undefined ? handler : { ...handler, httpGet: defaultHttpGet(handler.httpGet) };
}

function defaultHttpGet(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || "/", scheme: action.scheme || "HTTP" };
}

type ResourceList = Readonly<Record<string, Quantity>>;

function requestsFromLimits(resources: ResourceRequirements): ResourceRequirements {
  if (resources.limits === undefined) return resources;
  return { ...resources, requests: { ...resources.limits, ...resources.requests } };
}

interface Amounts {
  readonly limits?: ResourceList | undefined;
  readonly requests?: ResourceList | undefined;
}

export function roundedResources<Resources extends Amounts>(resources: Resources): Resources {
  const { limits, requests } = resources;
  return {
    ...resources,
    ...(limits && { limits: roundedList(limits) }),
    ...(requests && { requests: roundedList(requests) }),
  };
}

const nanosPerMilli = 1_000_000n;

/** Amounts are kept in thousandths at the finest; finer ones are rounded up. */
export function roundedList(list: ResourceList): ResourceList {
  return Object.fromEntries(Object.entries(list).map(([name, text]) => [name, rounded(text)]));
}

function rounded(text: Quantity): Quantity {
  const quantity = tryParseQuantity(text);
  if (quantity === undefined || quantity % nanosPerMilli === 0n) return text;
  const milli = quantity / nanosPerMilli + (quantity > 0n ? 1n : 0n);
  return formatQuantity(milli * nanosPerMilli, formatOf(text));
}
