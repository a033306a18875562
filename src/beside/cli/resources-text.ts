import { formatQuantity } from "../../ground/model/index.ts";
import { textTable } from "./text-table.ts";

/** What the agent answers: who has which CPUs and memory of this machine. */
export interface ResourcesAnswer {
  readonly cpuManagerPolicy: string;
  readonly memoryManagerPolicy: string;
  readonly topologyManagerPolicy: string;
  readonly topologyManagerScope: string;
  readonly cpus?: { readonly reserved: string; readonly shared: string; readonly free: string };
  readonly nodes: readonly {
    readonly id: number;
    readonly cpus: string;
    readonly exclusiveCpus?: string;
    readonly freeCpus?: string;
    readonly memoryBytes: number;
    readonly memory?: Readonly<Record<string, { readonly allocatable: number; readonly free: number }>>;
    readonly group?: readonly number[];
  }[];
  readonly containers: readonly {
    readonly namespace?: string;
    readonly pod?: string;
    readonly uid: string;
    readonly container: string;
    readonly cpus?: string;
    readonly memory?: readonly { readonly nodes: readonly number[]; readonly type: string; readonly bytes: number }[];
    readonly why: string;
  }[];
  /** Missing in the answer of an older agent. */
  readonly devices?: readonly DevicesOfResource[];
  /** Resource claims that pods use. */
  readonly claims?: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly pods: readonly string[];
    readonly drivers: readonly {
      readonly driver: string;
      readonly isRegistered: boolean;
      readonly devices: readonly { readonly pool: string; readonly device: string }[];
    }[];
  }[];
}

interface DevicesOfResource {
  readonly resource: string;
  readonly plugin: "registered" | "awaited" | "gone";
  readonly listed: number;
  readonly healthy: number;
  readonly given: number;
  readonly free: number;
  readonly notShown: number;
  readonly devices: readonly {
    readonly id: string;
    readonly health: string;
    readonly nodes: readonly number[];
    readonly holders: readonly {
      readonly uid: string;
      readonly container: string;
      readonly namespace?: string;
      readonly pod?: string;
      readonly why: string;
    }[];
  }[];
}

export function resourcesText(answer: ResourcesAnswer): string {
  const { cpuManagerPolicy, memoryManagerPolicy, topologyManagerPolicy, topologyManagerScope, cpus } = answer;
  const aligned = topologyManagerPolicy === "none" ? "" : ` (each ${topologyManagerScope})`;
  const policies = `CPUs: ${cpuManagerPolicy}, memory: ${memoryManagerPolicy}, topology: ${topologyManagerPolicy}${aligned}`;
  const shared = cpus && `Reserved CPUs: ${cpus.reserved}; shared by all who have none of their own: ${cpus.shared}`;
  return [
    policies,
    ...(shared === undefined ? [] : [shared]),
    "",
    ...nodeTable(answer),
    "",
    ...containerTable(answer),
    "",
    ...(answer.devices ?? []).flatMap((devices) => [...deviceTable(devices), ""]),
    ...claimTable(answer),
  ].join("\n");
}

function nodeTable({ nodes }: ResourcesAnswer): readonly string[] {
  const rows = nodes.map(({ id, cpus, exclusiveCpus, freeCpus, memoryBytes, memory, group = [id] }) => {
    const left = Object.entries(memory ?? {}).map(([type, { free, allocatable }]) => {
      return `${type} ${amount(free)} of ${amount(allocatable)}`;
    });
    const together = group.length > 1 ? `; serves with nodes ${group.join(",")}` : "";
    return [
      String(id),
      cpus || "-",
      exclusiveCpus || "-",
      freeCpus || "-",
      amount(memoryBytes),
      left.length === 0 ? "-" : `${left.join(", ")}${together}`,
    ];
  });
  return textTable([["NUMA NODE", "CPUS", "GIVEN", "FREE", "MEMORY", "FREE MEMORY"], ...rows]);
}

function containerTable({ containers }: ResourcesAnswer): readonly string[] {
  if (containers.length === 0) return ["No container has CPUs or memory of its own."];
  const rows = containers.map(({ namespace, pod, uid, container, cpus, memory = [], why }) => [
    pod === undefined ? uid : `${namespace}/${pod}`,
    container,
    cpus ?? "shared",
    memory.map(({ nodes, type, bytes }) => `${type} ${amount(bytes)} of ${nodes.join(",")}`).join(", ") || "any",
    why,
  ]);
  return textTable([["POD", "CONTAINER", "CPUS", "MEMORY", "WHY"], ...rows]);
}

function deviceTable({
  resource,
  plugin,
  listed,
  healthy,
  given,
  free,
  notShown,
  devices,
}: DevicesOfResource): readonly string[] {
  const plugins = { registered: "", awaited: "; its plugin is awaited", gone: "; its plugin is gone" };
  const head = `${resource}: ${listed} listed, ${healthy} healthy, ${given} given, ${free} free${plugins[plugin]}`;
  const rows = devices.flatMap(({ id, health, nodes, holders }) => {
    const own = [shownId(id), health, nodes.join(",") || "-"];
    if (holders.length === 0) return [[...own, "-", "-", "-"]];
    return holders.map(({ uid, container, namespace, pod, why }) => [
      ...own,
      pod === undefined ? uid : `${namespace}/${pod}`,
      container,
      why,
    ]);
  });
  const more = notShown > 0 ? [`and ${notShown} more that nobody has`] : [];
  if (rows.length === 0) return [head];
  return [head, ...textTable([["DEVICE", "HEALTH", "NUMA NODE", "POD", "CONTAINER", "WHY"], ...rows]), ...more];
}

const longestId = 60;

/** A plugin calls its devices what it likes; a terminal must not be told what to do by it. */
function shownId(id: string): string {
  const printable = /^[\x21-\x7e]+$/.test(id) ? id : JSON.stringify(id).replace(/[^\x20-\x7e]/g, "?");
  return printable.length <= longestId ? printable : `${printable.slice(0, longestId)}…`;
}

function claimTable({ claims = [] }: ResourcesAnswer): readonly string[] {
  if (claims.length === 0) return [];
  const rows = claims.flatMap(({ namespace, name, pods, drivers }) =>
    drivers.map(({ driver, isRegistered, devices }) => [
      `${namespace}/${name}`,
      pods.join(", "),
      isRegistered ? driver : `${driver} (not registered)`,
      devices.map(({ pool, device }) => shownId(`${pool}/${device}`)).join(", ") || "not prepared",
    ]),
  );
  return [...textTable([["CLAIM", "PODS", "DRIVER", "DEVICES"], ...rows]), ""];
}

function amount(bytes: number): string {
  return formatQuantity(BigInt(bytes) * 1_000_000_000n, "binary");
}
