import { messageOf, parseDuration } from "../../ground/base/index.ts";
import { defaultSettings, type NetworkSettings, type ShimSettings } from "./settings.ts";

/** Flags of the shim, in upstream's spelling where upstream had them. */
export const shimFlags = [
  ...(["docker-endpoint", "container-runtime-endpoint", "experimental-dockershim-root-directory"] as const),
  ...(["pod-infra-container-image", "network-plugin", "cni-conf-dir", "cni-bin-dir"] as const),
  ...(["image-pull-progress-deadline", "runtime-request-timeout", "cgroup-driver", "streaming-bind-addr"] as const),
] as const;

export type ShimFlags = { readonly [Name in (typeof shimFlags)[number]]?: string | undefined };

/** Settings out of flags, or what is wrong with them. */
export function settingsOf(
  flags: ShimFlags,
  defaults: ShimSettings = defaultSettings,
): ShimSettings | { readonly problem: string } {
  try {
    return {
      dockerEndpoint: endpoint("docker-endpoint", flags) ?? defaults.dockerEndpoint,
      endpoint: endpoint("container-runtime-endpoint", flags) ?? defaults.endpoint,
      rootDir: absolute("experimental-dockershim-root-directory", flags) ?? defaults.rootDir,
      sandboxImage: flags["pod-infra-container-image"] || defaults.sandboxImage,
      requestTimeoutMs: duration("runtime-request-timeout", flags) || defaults.requestTimeoutMs,
      pullProgressDeadlineMs: duration("image-pull-progress-deadline", flags) || defaults.pullProgressDeadlineMs,
      network: networkOf(flags, defaults.network),
      cgroupDriver: driverOf(flags) ?? defaults.cgroupDriver,
      streamingAddress: addressOf(flags) ?? defaults.streamingAddress,
    };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function endpoint(name: "docker-endpoint" | "container-runtime-endpoint", flags: ShimFlags): string | undefined {
  const value = flags[name];
  if (value === undefined || value === "") return undefined;
  if (!/^unix:\/\/\/.+/.test(value)) throw new Error(`--${name}: only support unix socket endpoint: found "${value}"`);
  return value;
}

function absolute(name: "experimental-dockershim-root-directory", flags: ShimFlags): string | undefined {
  const value = flags[name];
  if (value === undefined) return undefined;
  if (!value.startsWith("/")) throw new Error(`--${name} wants an absolute path, found "${value}"`);
  return value;
}

function duration(
  name: "runtime-request-timeout" | "image-pull-progress-deadline",
  flags: ShimFlags,
): number | undefined {
  const value = flags[name];
  if (value === undefined) return undefined;
  const millis = parseDuration(value);
  if (millis === undefined || millis < 0) throw new Error(`--${name} wants a duration such as 1m0s, found "${value}"`);
  return millis;
}

function networkOf(flags: ShimFlags, defaults: NetworkSettings): NetworkSettings {
  const plugin = flags["network-plugin"] ?? (defaults.plugin === "cni" ? "cni" : "");
  if (plugin === "") return { plugin: "docker" };
  if (plugin !== "cni")
    throw new Error(`network plugin "${plugin}" not found: there is "cni", and "" for docker's own bridge`);
  const usual = defaults.plugin === "cni" ? defaults : { confDir: "/etc/cni/net.d", binDirs: ["/opt/cni/bin"] };
  const binDirs = flags["cni-bin-dir"]?.split(",").filter((directory) => directory !== "") ?? usual.binDirs;
  return { plugin: "cni", confDir: flags["cni-conf-dir"] ?? usual.confDir, binDirs };
}

function driverOf(flags: ShimFlags): string | undefined {
  const driver = flags["cgroup-driver"];
  if (driver === undefined || driver === "" || driver === "cgroupfs" || driver === "systemd")
    return driver || undefined;
  throw new Error(`--cgroup-driver wants cgroupfs or systemd, found "${driver}"`);
}

function addressOf(flags: ShimFlags): string | undefined {
  const address = flags["streaming-bind-addr"];
  if (address === undefined || /^\[?[\w.:]+\]?:\d{1,5}$/.test(address)) return address;
  throw new Error(`--streaming-bind-addr wants HOST:PORT, found "${address}"`);
}
