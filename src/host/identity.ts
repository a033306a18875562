/** The name this machine has as a node: the override or the host's own name, trimmed, in lower case. */
export function nodeNameFrom(hostnameOverride: string, readHostname: () => string): string {
  let name = hostnameOverride;
  if (name === "") {
    try {
      name = readHostname();
    } catch (error) {
      throw new Error("couldn't determine hostname", { cause: error });
    }
  }
  const trimmed = name.trim();
  if (trimmed === "") {
    throw new Error("empty hostname is invalid: give the machine a hostname or set --hostname-override");
  }
  return trimmed.toLowerCase();
}
