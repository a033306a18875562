import { ContainerAllocateResponse } from "../../../connections/plugins/index.ts";
import type { DeviceGrants } from "../../runtime/index.ts";

/** What a container gets of all its devices together. Where two plugins want different things, the first one's holds. */
export function mergeResponses(
  responses: Iterable<readonly [resource: string, response: Uint8Array]>,
  onConflict: (resource: string, what: string) => void,
): DeviceGrants {
  const env = new Map<string, string>();
  const annotations = new Map<string, string>();
  const mounts = new Map<string, DeviceGrants["mounts"][number]>();
  const devices = new Map<string, DeviceGrants["devices"][number]>();
  const cdi = new Set<string>();
  for (const [resource, bytes] of [...responses].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const put = <Value>(into: Map<string, Value>, what: string, key: string, value: Value): void => {
      const before = into.get(key);
      if (before === undefined) into.set(key, value);
      else if (JSON.stringify(before) !== JSON.stringify(value)) onConflict(resource, `${what} ${key}`);
    };
    const response = ContainerAllocateResponse.decode(bytes);
    for (const [name, value] of Object.entries(response.envs)) put(env, "variable", name, value);
    for (const { containerPath, hostPath, readOnly } of response.mounts) {
      put(mounts, "mount at", containerPath, { containerPath, hostPath, readOnly });
    }
    for (const { containerPath, hostPath, permissions } of response.devices) {
      put(devices, "device at", containerPath, { containerPath, hostPath, permissions });
    }
    for (const [key, value] of Object.entries(response.annotations)) put(annotations, "annotation", key, value);
    for (const { name } of response.cdiDevices) cdi.add(name);
  }
  return {
    env,
    annotations: Object.fromEntries(annotations),
    mounts: [...mounts.values()],
    devices: [...devices.values()],
    cdiDevices: [...cdi],
  };
}
