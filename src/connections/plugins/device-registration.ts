import { lstat, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { goQuote, isMissing } from "../../ground/base/index.ts";
import { serveUnix, serviceOf } from "../../ground/grpc/index.ts";
import { type DevicePlugins, devicePluginVersion } from "./device-plugins.ts";
import { RegistrationDefinition } from "./gen/device-plugin.ts";

const socketName = "kubelet.sock";
const requestBytes = 64 * 1024;
const mostConnections = 200;

/** Answers plugins that register by a call, at a socket they know. They watch it come, so that they register again. */
export async function serveDeviceRegistration(
  directory: string,
  plugins: DevicePlugins,
  metrics: { readonly onRegister: (resource: string) => void },
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const service = serviceOf(RegistrationDefinition, {
    async register({ version, endpoint, resourceName }) {
      metrics.onRegister(resourceName);
      if (version !== devicePluginVersion) {
        const wanted = `Supported version is [${goQuote(devicePluginVersion)}]`;
        throw new Error(`requested API version ${goQuote(version)} is not supported by kubelet. ${wanted}`);
      }
      if (endpoint === "" || endpoint.includes("/") || endpoint.includes("\0") || endpoint === "..") {
        throw new Error(`the endpoint ${goQuote(endpoint.slice(0, 300))} is not the name of a socket in ${directory}`);
      }
      await plugins.connect(resourceName, join(directory, endpoint), signal);
      return {};
    },
  });
  const settings = { maxRequestBytes: requestBytes, maxConnections: mostConnections };
  return await serveUnix(join(directory, socketName), [service], settings);
}

/**
 * Sockets of an earlier run, those of plugins included: a plugin that sees its socket go registers again. Everything
 * else stays. Returns whether there was anything at all, as there is wherever plugins have ever been.
 */
export async function removeOldSockets(directory: string): Promise<boolean> {
  const names = await readdir(directory);
  for (const name of names) {
    const path = join(directory, name);
    try {
      if ((await lstat(path)).isSocket()) await unlink(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return names.some((name) => !name.startsWith("."));
}
