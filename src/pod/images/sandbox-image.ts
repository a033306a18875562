/** The image of sandboxes, as containerd says in its verbose status; undefined when the runtime does not tell. */
export function sandboxImageOf(statusInfo: Readonly<Record<string, string>>): string | undefined {
  try {
    const config: unknown = JSON.parse(statusInfo["config"] ?? "");
    if (typeof config !== "object" || config === null || !("sandboxImage" in config)) return undefined;
    return typeof config.sandboxImage === "string" && config.sandboxImage !== "" ? config.sandboxImage : undefined;
  } catch {
    return undefined;
  }
}
