import type { ListedDevice, PreferenceQuery } from "../../../connections/plugins/index.ts";

export interface DeviceChoice {
  readonly resource: string;
  readonly count: number;
  /** All devices that can be given, in use or not. */
  readonly healthy: ReadonlyMap<string, ListedDevice>;
  readonly inUse: ReadonlySet<string>;
  /** Of containers of the same pod that have ended when this one starts. */
  readonly reusable: ReadonlySet<string>;
  /** NUMA nodes on which they should lie; undefined: anywhere. */
  readonly nodes: ReadonlySet<number> | undefined;
  /** The plugin's answer; undefined: it has to be asked first. */
  readonly preferred: (query: PreferenceQuery) => readonly string[] | undefined;
}

/** The plugin may have a say, and has not been asked. */
export class PreferenceNeeded extends Error {
  override readonly name = "PreferenceNeeded";
  readonly resource: string;
  readonly query: PreferenceQuery;

  constructor(resource: string, query: PreferenceQuery) {
    super(`the plugin of ${resource} is to be asked which devices it prefers`);
    this.resource = resource;
    this.query = query;
  }
}

/** They can't be given; the message is the one users know. */
export class DevicesLacking extends Error {
  override readonly name = "DevicesLacking";
}

/** Which devices a container gets, in order: what its pod has anyway, then those near, then the others. */
export function chooseDevices(choice: DeviceChoice): readonly string[] {
  const { resource, count, healthy, inUse, nodes } = choice;
  const taken = new Set([...choice.reusable].sort().slice(0, count));
  const needed = count - taken.size;
  const available = new Set([...healthy.keys()].filter((id) => !inUse.has(id)).sort());
  if (available.size < needed) {
    const amounts = `Requested: ${needed}, Available: ${available.size}`;
    throw new DevicesLacking(`requested number of devices unavailable for ${resource}. ${amounts}`);
  }
  const take = (ids: Iterable<string>, from: ReadonlySet<string>): void => {
    for (const id of ids) if (taken.size < count && from.has(id)) taken.add(id);
  };
  const preferred = (from: ReadonlySet<string>): readonly string[] => {
    const must = [...taken];
    const query = { available: [...new Set([...must, ...from])], mustInclude: must, count };
    const answer = choice.preferred(query);
    if (answer === undefined) throw new PreferenceNeeded(resource, query);
    return answer;
  };
  if (needed === 0) return [...taken].sort();
  const { aligned, unaligned, elsewhere } = split(available, healthy, nodes);
  if (needed < aligned.size) {
    take(preferred(aligned), aligned);
    take(aligned, aligned);
  } else {
    take(aligned, aligned);
    if (taken.size < count) take(preferred(available), available);
    take(unaligned, unaligned);
    take(elsewhere, elsewhere);
  }
  return [...taken].sort();
}

/** By where they lie. Where nobody says, or no device does, all are alike. */
function split(
  available: ReadonlySet<string>,
  healthy: ReadonlyMap<string, ListedDevice>,
  nodes: ReadonlySet<number> | undefined,
): Readonly<Record<"aligned" | "unaligned" | "elsewhere", ReadonlySet<string>>> {
  const placed = [...healthy.values()].some(({ numaNodes }) => numaNodes.length > 0);
  const groups = { aligned: new Set<string>(), unaligned: new Set<string>(), elsewhere: new Set<string>() };
  if (nodes === undefined || !placed) return { ...groups, elsewhere: available };
  for (const id of available) {
    const of = healthy.get(id)?.numaNodes ?? [];
    if (of.length === 0) groups.elsewhere.add(id);
    else if (of.some((node) => nodes.has(node))) groups.aligned.add(id);
    else groups.unaligned.add(id);
  }
  return groups;
}
