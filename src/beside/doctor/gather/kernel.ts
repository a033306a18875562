import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { ExaminedWorld } from "../world.ts";

/** What the kernel can, and its limits. */
export interface KernelFacts {
  /** Where its options were read: a file, or undefined where there is none. */
  readonly optionsFrom: string | undefined;
  /** By the name of a feature: whether the kernel has it, and how that is known. */
  readonly features: Readonly<Record<string, FeatureState>>;
  /** Undefined: unknown. */
  readonly seccomp: boolean | undefined;
  /** Values below /proc/sys by their path; absent ones are left out. */
  readonly settings: Readonly<Record<string, number>>;
}

export interface FeatureState {
  readonly has: boolean | undefined;
  readonly how: string;
}

interface Feature {
  readonly name: string;
  /** CONFIG_ names, all of which must be set. */
  readonly options: readonly string[];
  /** The module that brings it. */
  readonly module?: string;
  /** A file that is there where the kernel has it. */
  readonly mark?: string;
}

export const kernelFeatures: readonly Feature[] = [
  { name: "namespaces", options: ["NAMESPACES", "NET_NS", "PID_NS", "IPC_NS", "UTS_NS"], mark: "/proc/self/ns/net" },
  { name: "overlay", options: ["OVERLAY_FS"], module: "overlay" },
  { name: "veth", options: ["VETH"], module: "veth" },
  { name: "bridge", options: ["BRIDGE"], module: "bridge" },
  { name: "br_netfilter", options: ["BRIDGE_NETFILTER"], module: "br_netfilter", mark: "/proc/sys/net/bridge" },
  {
    name: "nf_conntrack",
    options: ["NF_CONNTRACK"],
    module: "nf_conntrack",
    mark: "/proc/sys/net/netfilter/nf_conntrack_max",
  },
  { name: "xt_comment", options: ["NETFILTER_XT_MATCH_COMMENT"], module: "xt_comment" },
  { name: "xt_mark", options: ["NETFILTER_XT_MARK"], module: "xt_mark" },
  { name: "seccomp", options: ["SECCOMP", "SECCOMP_FILTER"], mark: "/proc/sys/kernel/seccomp/actions_avail" },
  { name: "keys", options: ["KEYS"], mark: "/proc/keys" },
];

const settings = [
  ...["fs/inotify/max_user_watches", "fs/inotify/max_user_instances", "fs/nr_open"],
  ...[
    "kernel/pid_max",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "kernel/panic",
    "kernel/panic_on_oops",
  ],
  ...["vm/overcommit_memory", "vm/panic_on_oom"],
  ...["net/netfilter/nf_conntrack_max", "net/netfilter/nf_conntrack_count"],
];

export async function gatherKernel(world: ExaminedWorld): Promise<KernelFacts> {
  const { machine } = world;
  const release = ((await machine.textIfThere("/proc/sys/kernel/osrelease")) ?? "").trim();
  const options = await readOptions(world, release);
  const modules = await readModules(world, release);
  const features = new Map<string, FeatureState>();
  for (const feature of kernelFeatures) features.set(feature.name, await stateOf(world, feature, options, modules));
  const values: [string, number][] = [];
  for (const name of settings) {
    const value = await machine.textIfThere(`/proc/sys/${name}`).catch(() => undefined);
    if (value !== undefined) values.push([name, Number(value.trim())]);
  }
  return {
    optionsFrom: options?.file,
    features: Object.fromEntries(features),
    seccomp: features.get("seccomp")?.has,
    settings: Object.fromEntries(values),
  };
}

interface Options {
  readonly file: string;
  readonly set: ReadonlyMap<string, string>;
}

async function readOptions(world: ExaminedWorld, release: string): Promise<Options | undefined> {
  const packed = await readPacked(world).catch(() => undefined);
  if (packed !== undefined) return { file: "/proc/config.gz", set: parseOptions(packed) };
  const places = [`/boot/config-${release}`, `/usr/lib/modules/${release}/config`, `/lib/modules/${release}/config`];
  for (const file of places) {
    const content = await world.machine.textIfThere(file, 1024 * 1024).catch(() => undefined);
    if (content !== undefined) return { file, set: parseOptions(content) };
  }
  return undefined;
}

const longestPacked = 512 * 1024;

async function readPacked({ root }: ExaminedWorld): Promise<string> {
  await using file = await open(`${root}/proc/config.gz`);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(longestPacked), 0, longestPacked, 0);
  const unpacked = await promisify(gunzip)(buffer.subarray(0, bytesRead), { maxOutputLength: 4 * 1024 * 1024 });
  return unpacked.toString("latin1");
}

function parseOptions(content: string): ReadonlyMap<string, string> {
  return new Map([...content.matchAll(/^CONFIG_(\w+)=([ym])$/gm)].map(([, name = "", value = ""]) => [name, value]));
}

/** Modules that are loaded, built in, or could be loaded; undefined: the machine does not say. */
async function readModules({ machine }: ExaminedWorld, release: string): Promise<ReadonlySet<string> | undefined> {
  const files = [`/lib/modules/${release}/modules.builtin`, `/lib/modules/${release}/modules.dep`];
  const names = new Set<string>();
  let isKnown = false;
  for (const file of files) {
    const content = await machine.textIfThere(file, 2 * 1024 * 1024).catch(() => undefined);
    if (content === undefined) continue;
    isKnown = true;
    for (const [, name = ""] of content.matchAll(/^(?:\S*\/)?([\w-]+)\.ko\S*?:?/gm))
      names.add(name.replaceAll("-", "_"));
  }
  return isKnown ? names : undefined;
}

/** By the options; where there are none, by what is there. Nothing is loaded or made to find out. */
async function stateOf(
  { machine }: ExaminedWorld,
  { options: wanted, module, mark, name }: Feature,
  options: Options | undefined,
  modules: ReadonlySet<string> | undefined,
): Promise<FeatureState> {
  if (mark !== undefined && (await machine.isThere(mark))) return { has: true, how: `${mark} is there` };
  if (module !== undefined && (await machine.isThere(`/sys/module/${module}`)))
    return { has: true, how: `module ${module} is loaded` };
  if (name === "overlay" && ((await machine.textIfThere("/proc/filesystems")) ?? "").includes("\toverlay\n")) {
    return { has: true, how: "/proc/filesystems has it" };
  }
  if (options !== undefined) {
    const missing = wanted.filter((option) => !options.set.has(option));
    if (missing.length > 0)
      return { has: false, how: `${missing.map((each) => `CONFIG_${each}`).join(", ")} is not set in ${options.file}` };
    const asModule = wanted.some((option) => options.set.get(option) === "m");
    if (asModule && module !== undefined && modules?.has(module) === false) {
      return { has: false, how: `it is a module by ${options.file}, but ${module} is not installed` };
    }
    return { has: true, how: `${options.file} has it${asModule ? " as a module" : ""}` };
  }
  if (module !== undefined && modules?.has(module) === true) return { has: true, how: `module ${module} is installed` };
  return { has: undefined, how: "neither /proc/config.gz nor a config below /boot is there, and nothing shows it" };
}
