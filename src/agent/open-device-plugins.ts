import { claimDirectory, ensureDirectory, labelPluginDirectory } from "../connections/host/index.ts";
import { removeOldSockets, serveDeviceRegistration } from "../connections/plugins/index.ts";
import type { Host } from "./inputs.ts";

/** The directory of device plugins belongs to one agent: a second one would take their sockets from under the first. */
export const openDevicePlugins: Host["openDevicePlugins"] = async (directory, plugins, { log, onRegister, signal }) => {
  await ensureDirectory(directory, 0o755);
  const claim = await claimDirectory(directory);
  try {
    await labelPluginDirectory(directory, log);
    const wereThere = await removeOldSockets(directory);
    const server = await serveDeviceRegistration(directory, plugins, { onRegister }, signal);
    return {
      wereThere,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        claim[Symbol.dispose]();
      },
    };
  } catch (error) {
    claim[Symbol.dispose]();
    throw error;
  }
};
