import { CpuSet } from "../../base/index.ts";
import { type Nano, parseQuantity } from "../../model/index.ts";
import type { KubeletConfiguration } from "../kubelet-configuration.ts";

export const reservableResources: readonly string[] = ["cpu", "memory", "ephemeral-storage", "pid"];

/** What is kept from pods. */
export interface ReservedResources {
  readonly system: Readonly<Record<string, Nano>>;
  readonly kube: Readonly<Record<string, Nano>>;
  /** CPUs reserved by number; empty when only an amount is reserved. */
  readonly cpus: readonly number[];
}

/** The reservations of a valid configuration; CPUs reserved by number take the place of the amounts. */
export function reservedResources(kubelet: KubeletConfiguration): ReservedResources {
  const cpus = [...CpuSet.parse(kubelet.reservedSystemCPUs)];
  const system = quantities(kubelet.systemReserved);
  const { cpu: _, ...kubeWithoutCpu } = quantities(kubelet.kubeReserved);
  if (cpus.length === 0) return { system, kube: quantities(kubelet.kubeReserved), cpus };
  return { system: { ...system, cpu: parseQuantity(`${cpus.length}`) }, kube: kubeWithoutCpu, cpus };
}

/** `50%`; the kubelet takes any number of signs. */
const percentage = /^([+-]?[0-9]{1,15})%+$/;

/** The whole number of a percentage; undefined: it is none. */
export function percentOf(text: string): number | undefined {
  const digits = percentage.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** How much of what pods request is kept from pods of lower classes, in percent; undefined: that is not asked for. */
export function qosReservedPercent({ qosReserved }: KubeletConfiguration): bigint | undefined {
  const percent = percentOf(qosReserved["memory"] ?? "");
  return percent === undefined ? undefined : BigInt(percent);
}

function quantities(map: Readonly<Record<string, string>>): Record<string, Nano> {
  return Object.fromEntries(Object.entries(map).map(([name, text]) => [name, parseQuantity(text)]));
}
