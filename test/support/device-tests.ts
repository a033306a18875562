import type { IdentifiedPod } from "../../src/ground/model/index.ts";
import { testContainer, testPod } from "./pods.ts";

export const gpu = "vendor.com/gpu";
export const nic = "vendor.com/nic";

export function wants(name: string, ...containers: readonly Readonly<Record<string, number>>[]): IdentifiedPod {
  const made = containers.map((limits, index) => testContainer(`c${index}`, { resources: { limits: texts(limits) } }));
  return testPod({ containers: made }, { name, uid: name });
}

export function texts(limits: Readonly<Record<string, number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(limits).map(([resource, count]) => [resource, String(count)]));
}
