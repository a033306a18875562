import { join } from "node:path";
import { type PluginHandler, PluginRegistration } from "../connections/plugins/index.ts";
import type { Foundation } from "./foundation.ts";

/** Plugins of all kinds that register by a socket in a directory. */
export function buildPluginRegistration(
  { rootDir, clock, log }: Foundation,
  handlers: Readonly<Record<string, PluginHandler | undefined>>,
): PluginRegistration {
  return new PluginRegistration({
    directory: join(rootDir, "plugins_registry"),
    handlers: new Map(Object.entries(handlers).flatMap(([type, handler]) => (handler ? [[type, handler]] : []))),
    clock,
    log: log.named("plugins"),
  });
}
