import {
  type Container,
  type EnvVar,
  ExpansionBudget,
  expand,
  expandStrictly,
  type IdentifiedPod,
  orderedPodIps,
  podField,
  resourceField,
} from "../../../ground/model/index.ts";
import type { EnvContext } from "./context.ts";
import { EnvSources } from "./env-sources.ts";
import { serviceEnv } from "./service-env.ts";

/** A container's environment, resolved. */
export interface ContainerEnv {
  /** In bytes, because a secret need not be text. */
  readonly variables: ReadonlyMap<string, Buffer>;
  /** Replaces `$(NAME)` in a text; an unknown name stays as written. */
  expand(text: string): string;
  /** As `expand`, but a missing or empty variable is an error. */
  expandStrictly(text: string): string;
}

/** Later wins: service variables, then envFrom, then env in its order. */
export async function containerEnv(
  pod: IdentifiedPod,
  container: Container,
  context: EnvContext,
  signal: AbortSignal,
): Promise<ContainerEnv> {
  const ofServices = serviceEnv(pod, context.services);
  const sources = new EnvSources(pod, context, signal);
  const own = new Map<string, ByteText>();
  const budget = new ExpansionBudget();
  for (const envFrom of container.envFrom ?? []) {
    for (const [key, value] of await sources.all(envFrom)) {
      budget.spend(value.length);
      own.set(`${envFrom.prefix ?? ""}${key}`, byteTextOf(value));
    }
  }
  const lookup = (name: ByteText): ByteText | undefined => {
    const text = textOf(name);
    return own.get(text) ?? ofServices.get(text);
  };
  for (const variable of container.env ?? []) {
    const value = variable.value
      ? expand(byteTextOf(variable.value), lookup, budget)
      : await referredValue(variable, pod, container, context, sources);
    // One annotation or key may be named a thousand times.
    if (value !== undefined && !variable.value) budget.spend(value.length);
    if (value !== undefined) own.set(variable.name, value);
  }
  const missing = [...ofServices].filter(([name]) => !own.has(name));
  const variables = new Map([...own, ...missing].map(([name, value]) => [name, Buffer.from(value, "latin1")]));
  return envOf(variables);
}

/** The same environment with variables of device plugins below it. */
export function withDeviceEnv(env: ContainerEnv, ofDevices: ReadonlyMap<string, string>): ContainerEnv {
  if (ofDevices.size === 0) return env;
  const below = [...ofDevices].map(([name, value]) => [name, Buffer.from(value)] as const);
  return envOf(new Map([...below, ...env.variables]));
}

function envOf(variables: ReadonlyMap<string, Buffer>): ContainerEnv {
  const lookup = (name: ByteText): ByteText | undefined => variables.get(textOf(name))?.toString("latin1");
  const budget = new ExpansionBudget();
  return {
    variables,
    expand: (text) => textOf(expand(byteTextOf(text), lookup, budget)),
    expandStrictly: (text) => textOf(expandStrictly(byteTextOf(text), lookup, budget)),
  };
}

/** Undefined: an optional source is missing, and the variable with it. */
async function referredValue(
  { valueFrom }: EnvVar,
  pod: IdentifiedPod,
  container: Container,
  context: EnvContext,
  sources: EnvSources,
): Promise<ByteText | undefined> {
  if (valueFrom?.fieldRef !== undefined) {
    const { nodeIps } = context.dns;
    const podIps = orderedPodIps(pod.spec.hostNetwork === true ? nodeIps : context.podIps, nodeIps);
    return byteTextOf(podField(pod, valueFrom.fieldRef.fieldPath, { podIps, hostIps: nodeIps }));
  }
  if (valueFrom?.resourceFieldRef !== undefined) {
    return resourceField(pod, valueFrom.resourceFieldRef, container, context.nodeAllocatable);
  }
  if (valueFrom === undefined) return "";
  const value = await sources.one(valueFrom);
  return value === undefined ? undefined : byteTextOf(value);
}

/** One character per byte, so that values which are not text survive being joined and searched. */
type ByteText = string;

function byteTextOf(value: string | Buffer): ByteText {
  return (typeof value === "string" ? Buffer.from(value) : value).toString("latin1");
}

function textOf(bytes: ByteText): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
