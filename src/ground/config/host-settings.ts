const variable = "NODELET_HOST_SETTINGS";

/**
 * Whether the agent may change what belongs to the machine rather than to its pods: settings of the kernel, chains of
 * iptables. `leave` in the environment, since the kubelet's configuration has no place for it, makes it refrain: on a
 * machine that is somebody's desk, or that several agents share.
 */
export function mayChangeHost(environment: Readonly<Record<string, string>>): boolean {
  const text = environment[variable];
  if (text === undefined || text === "") return true;
  if (text === "leave") return false;
  throw new Error(`the environment variable ${variable} is ${JSON.stringify(text)}; it may be "leave"`);
}
