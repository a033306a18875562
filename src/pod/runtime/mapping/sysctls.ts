import type { IdentifiedPod } from "../../../ground/model/index.ts";

export function podSysctls(pod: IdentifiedPod): Record<string, string> {
  const sysctls = pod.spec.securityContext?.sysctls ?? [];
  return Object.fromEntries(sysctls.map(({ name, value }) => [normalSysctlName(name), value]));
}

/** Names may be written with `/` between their parts (so that a part can hold a dot); runtimes want `.` there. */
export function normalSysctlName(name: string): string {
  if (/[./]/.exec(name)?.[0] !== "/") return name;
  return name.replace(/[./]/g, (separator) => (separator === "/" ? "." : "/"));
}
