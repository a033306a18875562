import type { UnitProperty } from "../../connections/host/index.ts";
import type { ObservedResources } from "../../ground/model/index.ts";
import type { CgroupDriver, CgroupPresence, HealMode, LeftProcesses } from "./cgroup-driver.ts";
import { CgroupError, type CgroupTree } from "./cgroup-tree.ts";
import { type CgroupValues, singleValues } from "./cgroup-values.ts";
import { newSliceProperties, type SystemdFacts, sliceProperties } from "./slice-properties.ts";

/** Port: systemd as the manager of units. */
export interface SliceManager {
  version(): Promise<number>;
  startTransient(unit: string, properties: readonly UnitProperty[]): Promise<"made" | "existed">;
  setProperties(unit: string, properties: readonly UnitProperty[]): Promise<void>;
  stop(unit: string): Promise<void>;
}

const rootSlice = "-.slice";

/**
 * Cgroups as slices of systemd. systemd owns their control files: whatever it does not know it takes back when it next
 * looks at a slice (the first scope below, a reload). So every value it has a word for is told to it first and written
 * to the file after, exactly; the others are for the files alone, which it then leaves as they are.
 */
export class SliceTree implements CgroupDriver {
  readonly #tree: CgroupTree;
  readonly #manager: SliceManager;
  /** What this process has told systemd, by slice and property; an earlier agent may have told it something else. */
  readonly #told = new Map<string, Map<string, string>>();

  #facts: SystemdFacts | undefined;

  constructor(tree: CgroupTree, manager: SliceManager) {
    this.#tree = tree;
    this.#manager = manager;
  }

  presence(path: string): Promise<CgroupPresence> {
    return this.#tree.presence(path);
  }

  async make(path: string, values: CgroupValues): Promise<"made" | "existed"> {
    const { unit, parent } = unitsOf(path);
    const outcome = await this.#asking("create", path, async () => {
      const facts = await this.#readFacts();
      const properties = sliceProperties(values, facts);
      const made = await this.#manager.startTransient(unit, [
        ...newSliceProperties(unit, parent, facts),
        ...properties,
      ]);
      if (made === "made") this.#note(path, properties);
      return made;
    });
    // systemd hands down only the controllers that it has settings for.
    await this.#tree.create(path);
    return outcome;
  }

  async write(path: string, values: CgroupValues): Promise<void> {
    await this.#tell(path, values, "news");
    await this.#tree.write(path, values);
  }

  async heal(path: string, values: CgroupValues, mode: HealMode): Promise<void> {
    // What is to be raised must not take along what is higher already.
    const parts = mode === "raise" ? singleValues(values) : [values];
    for (const part of parts) {
      const differs = await this.#tree.differs(path, part, mode);
      if (differs) {
        await this.#tell(path, part, "all");
        await this.#tree.write(path, part);
      } else if (mode === "exact") await this.#tell(path, part, "news");
    }
  }

  memoryUsage(path: string): Promise<bigint> {
    return this.#tree.memoryUsage(path);
  }

  memoryHeld(path: string): Promise<bigint> {
    return this.#tree.memoryHeld(path);
  }

  resources(path: string, meantShares: number): Promise<ObservedResources> {
    return this.#tree.resources(path, meantShares);
  }

  children(path: string): Promise<ReadonlySet<string>> {
    return this.#tree.children(path);
  }

  /** The directories first: that they can be removed shows that no process is left for systemd to kill. */
  async remove(path: string, processes: LeftProcesses, signal: AbortSignal): Promise<void> {
    this.#told.delete(path);
    await this.#tree.remove(path, processes, signal);
    await this.#asking("remove", path, () => this.#manager.stop(unitsOf(path).unit));
    // A reload in between may have made them again, and systemd knows only one of the trees of cgroup v1.
    await this.#tree.remove(path, processes, signal);
  }

  async #tell(path: string, values: CgroupValues, which: "all" | "news"): Promise<void> {
    await this.#asking("limit", path, async () => {
      const properties = sliceProperties(values, await this.#readFacts());
      const told = this.#told.get(path);
      const isNews = ([name, value]: UnitProperty): boolean => told?.get(name) !== textOf(value);
      if (which === "news" && !properties.some(isNews)) return;
      await this.#manager.setProperties(unitsOf(path).unit, properties);
      this.#note(path, properties);
    });
  }

  #note(path: string, properties: readonly UnitProperty[]): void {
    const told = this.#told.get(path) ?? new Map<string, string>();
    for (const [name, value] of properties) told.set(name, textOf(value));
    this.#told.set(path, told);
  }

  /** Asked once: what needs no change must need no bus. */
  async #readFacts(): Promise<SystemdFacts> {
    this.#facts ??= { cgroupVersion: this.#tree.version, systemdVersion: await this.#manager.version() };
    return this.#facts;
  }

  async #asking<Result>(action: string, path: string, ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask();
    } catch (error) {
      throw new CgroupError(action, path, error);
    }
  }
}

/** The slice that stands for a path, and the one above it. */
function unitsOf(path: string): { readonly unit: string; readonly parent: string } {
  const [unit, parent = rootSlice] = path
    .split("/")
    .filter((part) => part !== "")
    .toReversed();
  if (unit === undefined) throw new Error("the root of all cgroups cannot be managed");
  return { unit, parent };
}

function textOf({ value }: UnitProperty[1]): string {
  return String(value);
}
