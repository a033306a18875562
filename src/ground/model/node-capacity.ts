import type { Quantity } from "./kube/gen/types.ts";
import { type Nano, wholeUnits } from "./quantity.ts";
import { formatOf, formatQuantity } from "./quantity-format.ts";
import { addAmounts, amountsOf, hugePagesName, isHugePages, type ResourceAmounts } from "./resource-list.ts";

export type ResourceList = Readonly<Record<string, Quantity>>;

const nanosPerUnit = 1_000_000_000n;
const bytes = (amount: bigint): Quantity => formatQuantity(amount * nanosPerUnit, "binary");
const count = (amount: number): Quantity => formatQuantity(BigInt(amount) * nanosPerUnit, "decimal");

/** What the configuration says about how much of the machine pods may use. */
export interface CapacitySettings {
  readonly maxPods: number;
  /** 0 is no limit. */
  readonly podsPerCore: number;
  readonly localStorageIsolation: boolean;
  /** systemReserved and kubeReserved together. */
  readonly reserved: ResourceAmounts;
  /** Thresholds of hard eviction that lower what pods may use; the amount, or a share of the capacity. */
  readonly hardEviction: { readonly memory?: Threshold; readonly nodefs?: Threshold };
}

type Threshold = { readonly quantity: Nano } | { readonly fraction: number };

/** Counts of devices by resource name. */
export interface DeviceAmounts {
  readonly capacity: ReadonlyMap<string, number>;
  readonly allocatable: ReadonlyMap<string, number>;
  /** Resources whose plugin is gone for good. */
  readonly removed: readonly string[];
}

/** What a machine has for pods. */
export interface CapacityFacts {
  readonly machine: { readonly cpus: { readonly logical: number }; readonly memoryBytes: number };
  /** Bytes set aside for huge pages, by their size in bytes. */
  readonly hugePages: ReadonlyMap<bigint, bigint>;
  readonly devices: DeviceAmounts;
}

/** What the machine has; what others put beside it is kept. */
export function capacityOf(
  settings: CapacitySettings,
  { machine, hugePages, devices }: CapacityFacts,
  rootFilesystemBytes: bigint | undefined,
  present: ResourceList,
): ResourceList {
  const cores = machine.cpus.logical;
  const pods = settings.podsPerCore > 0 ? Math.min(cores * settings.podsPerCore, settings.maxPods) : settings.maxPods;
  const capacity: Record<string, Quantity> = { ...present };
  for (const name of Object.keys(capacity)) if (isHugePages(name)) delete capacity[name];
  capacity["cpu"] = count(cores);
  capacity["memory"] = bytes(BigInt(machine.memoryBytes));
  capacity["pods"] = count(pods);
  for (const [size, amount] of hugePages) capacity[hugePagesName(bytes(size))] = bytes(amount);
  if (settings.localStorageIsolation && rootFilesystemBytes !== undefined) {
    capacity["ephemeral-storage"] = bytes(rootFilesystemBytes);
  }
  for (const [name, amount] of devices.capacity) capacity[name] = count(amount);
  // A resource that stays with 0 tells the scheduler more than one that is gone.
  for (const name of devices.removed) capacity[name] = "0";
  return capacity;
}

/** What pods may use of it. */
export function allocatableOf(
  settings: CapacitySettings,
  capacity: ResourceList,
  devices: DeviceAmounts,
  present: ResourceList,
): ResourceList {
  const amounts = amountsOf(capacity);
  const reserved = withheldFrom(amounts, settings);
  const allocatable: Record<string, Quantity> = {};
  for (const [name, quantity] of Object.entries(present)) {
    if (capacity[name] !== undefined || (!isExtended(name) && !isHugePages(name))) allocatable[name] = quantity;
  }
  let hugePages = 0n;
  for (const [name, amount] of amounts) {
    if (isHugePages(name)) hugePages += amount;
    allocatable[name] = less(name, capacity[name] ?? "0", amount, reserved.get(name) ?? 0n);
  }
  for (const [name, amount] of devices.allocatable) allocatable[name] = count(amount);
  const memory = allocatable["memory"];
  if (memory !== undefined && hugePages > 0n) {
    allocatable["memory"] = less("memory", memory, amountsOf({ memory }).get("memory") ?? 0n, hugePages);
  }
  return allocatable;
}

/** What pods may not have of it: reservations, and what hard eviction defends. */
export function withheldFrom(capacity: ResourceAmounts, settings: CapacitySettings): ResourceAmounts {
  return addAmounts(settings.reserved, evictionReserve(settings, capacity));
}

/** The kubelet's rule, in its words: a node that keeps more for itself than there is could run no pod. */
export function overReserved(capacity: ResourceAmounts, settings: CapacitySettings): string | undefined {
  const withheld = withheldFrom(capacity, settings);
  const problems = [...capacity].flatMap(([name, amount]) => {
    const reserve = withheld.get(name) ?? 0n;
    if (reserve <= amount) return [];
    const [kept, there] = [reserve, amount].map((each) => formatQuantity(each, name === "cpu" ? "decimal" : "binary"));
    const what = `Resource "${name}" has a reservation of ${kept} but capacity of ${there}.`;
    return [`${what} Expected capacity >= reservation.`];
  });
  return problems.length === 0 ? undefined : `invalid Node Allocatable configuration. ${problems.join(" ")}`;
}

function less(name: string, quantity: Quantity, amount: Nano, reserve: Nano): Quantity {
  if (reserve === 0n) return quantity;
  const isBytes = name === "memory" || name === "ephemeral-storage" || isHugePages(name);
  const left = amount - reserve;
  return formatQuantity(left > 0n ? left : 0n, isBytes ? "binary" : formatOf(quantity));
}

function evictionReserve({ hardEviction }: CapacitySettings, capacity: ResourceAmounts): ResourceAmounts {
  const reserve = new Map<string, Nano>();
  const add = (resource: string, threshold: Threshold | undefined): void => {
    if (threshold === undefined) return;
    if ("quantity" in threshold) reserve.set(resource, threshold.quantity);
    else {
      const share = Number(wholeUnits(capacity.get(resource) ?? 0n)) * threshold.fraction;
      reserve.set(resource, BigInt(Math.trunc(share)) * nanosPerUnit);
    }
  };
  add("memory", hardEviction.memory);
  add("ephemeral-storage", hardEviction.nodefs);
  return reserve;
}

/** A resource that a vendor named: `example.com/gpu`. */
export function isExtended(name: string): boolean {
  if (!name.includes("/") || name.includes("kubernetes.io/") || name.startsWith("requests.")) return false;
  const [domain = "", short = "", ...more] = name.split("/");
  const fits = `requests.${domain}`.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(domain);
  return more.length === 0 && fits && /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(short);
}

/** What the scheduler cannot do without. */
export function missingResources(capacity: ResourceList, localStorageIsolation: boolean): string | undefined {
  const wanted = ["cpu", "memory", "pods", ...(localStorageIsolation ? ["ephemeral-storage"] : [])];
  const missing = wanted.filter((name) => capacity[name] === undefined);
  return missing.length === 0 ? undefined : `missing node capacity for resources: ${missing.join(", ")}`;
}
