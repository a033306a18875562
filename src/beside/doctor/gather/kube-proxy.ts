import { resolve } from "node:path";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import type { FileFact } from "./files.ts";
import { flagOf } from "./processes.ts";

/** The kube-proxy that runs on this machine. */
export interface KubeProxyFacts {
  readonly pid: number;
  /** Undefined: it is told of none. */
  readonly kubeconfig: { readonly file: FileFact; readonly holdsSecrets: boolean | undefined } | undefined;
  /** It sees other files than we do: it runs in a container, and paths are named from there. */
  readonly inContainer: boolean;
  readonly metricsBindAddress: { readonly value: string; readonly from: string };
}

export async function gatherKubeProxy(world: ExaminedWorld, need: NeedFact): Promise<KubeProxyFacts | undefined> {
  const { machine } = world;
  // One that has a network of its own serves no services here, whatever it is called.
  const proxy = (await need("processes")).find(({ program, isElsewhere }) => program === "kube-proxy" && !isElsewhere);
  if (proxy === undefined) return undefined;
  const { pid, args } = proxy;
  const cwd = (await machine.link(`/proc/${pid}/cwd`)) ?? "/";
  const [own, theirs] = [await machine.link("/proc/self/ns/mnt"), await machine.link(`/proc/${pid}/ns/mnt`)];
  const configPath = flagOf(args, "config");
  const config: ProxyConfig =
    configPath === undefined ? {} : await readConfig(world, await machine.within(pid, resolve(cwd, configPath)));
  const path = flagOf(args, "kubeconfig") ?? config.kubeconfig;
  return {
    pid,
    kubeconfig:
      path === undefined || path === ""
        ? undefined
        : await kubeconfigOf(world, await machine.within(pid, resolve(cwd, path))),
    inContainer: own !== theirs,
    metricsBindAddress: metricsAddress(args, configPath, config.metricsBindAddress),
  };
}

/** With a configuration file kube-proxy heeds no flag of what can be said there. */
function metricsAddress(args: readonly string[], configPath: string | undefined, inFile: string | undefined) {
  if (configPath !== undefined) {
    if (inFile !== undefined && inFile !== "") return { value: inFile, from: `file ${configPath} of kube-proxy` };
    return { value: "127.0.0.1:10249", from: "default of kube-proxy" };
  }
  const flag = flagOf(args, "metrics-bind-address");
  if (flag !== undefined) return { value: flag, from: "flag --metrics-bind-address of kube-proxy" };
  return { value: "127.0.0.1:10249", from: "default of kube-proxy" };
}

interface ProxyConfig {
  readonly kubeconfig?: string | undefined;
  readonly metricsBindAddress?: string | undefined;
}

async function readConfig({ machine }: ExaminedWorld, path: string): Promise<ProxyConfig> {
  const content = await machine.text(path);
  const { parse } = await import("yaml");
  // It may be a pod's: to hold each key against each other would take the square of the time.
  const parsed: unknown = parse(content, { maxAliasCount: 0, uniqueKeys: false });
  const fields = (typeof parsed === "object" && parsed !== null ? parsed : {}) as Readonly<Record<string, unknown>>;
  const connection = fields["clientConnection"] as { readonly kubeconfig?: unknown } | undefined;
  return {
    kubeconfig: typeof connection?.kubeconfig === "string" ? connection.kubeconfig : undefined,
    metricsBindAddress: typeof fields["metricsBindAddress"] === "string" ? fields["metricsBindAddress"] : undefined,
  };
}

async function kubeconfigOf({ machine }: ExaminedWorld, path: string) {
  const file = await machine.fact(path);
  const content = await machine.textIfThere(path).catch(() => undefined);
  const holdsSecrets =
    content === undefined ? undefined : /^\s*(?:-\s*)?(?:token|password|client-key-data):\s*\S/m.test(content);
  return { file, holdsSecrets };
}
