import { mountOf, readMounts } from "../../../connections/host/index.ts";
import { containersOf, type PersistentVolume, type SELinuxOptions } from "../../../ground/model/index.ts";
import type { WantedVolume } from "./kind.ts";

/** A level may list hundreds of categories; a page is what the kernel takes. */
const longestLabel = 4_000;

export interface SelinuxGates {
  /** SELinuxMountReadWriteOncePod: volumes of a single pod are mounted with a label. */
  readonly ofOnePod: boolean;
  /** SELinuxMount: those of many pods, too. */
  readonly ofMany: boolean;
  /** SELinuxChangePolicy: a pod may want its files labelled one by one instead. */
  readonly byChoice: boolean;
}

/**
 * Labels that volumes are mounted with where SELinux is on: every file in them then has that label at once, and the
 * runtime need not give it to them one by one.
 */
export class MountLabels {
  readonly #defaultLabel: string;
  readonly #gates: SelinuxGates;

  /** `defaultLabel`: that of containers' files by the policy, such as `system_u:object_r:container_file_t:s0`. */
  constructor(defaultLabel: string, gates: SelinuxGates) {
    this.#defaultLabel = defaultLabel;
    this.#gates = gates;
  }

  /** Undefined: the volume is mounted without, and its files labelled by the runtime. Throws when containers differ. */
  of({ pod, name, source }: Pick<WantedVolume, "pod" | "name" | "source">): string | undefined {
    if (source.type !== "claim" || !this.#mayHave(source.persistent)) return undefined;
    const ofPod = pod.spec.securityContext;
    if (this.#gates.byChoice && ofPod?.seLinuxChangePolicy === "Recursive") return undefined;
    const labels = new Set<string>();
    for (const { container } of containersOf(pod)) {
      const { volumeMounts = [], securityContext } = container;
      if (!volumeMounts.some((mount) => mount.name === name)) continue;
      const options = securityContext?.seLinuxOptions ?? ofPod?.seLinuxOptions;
      if (options !== undefined) labels.add(fileLabel(options, this.#defaultLabel) ?? "");
    }
    if (labels.size > 1) throw new Error(`multiple SELinux labels found: ${[...labels].sort().join(",")}`);
    const [label = ""] = labels;
    return label === "" ? undefined : checked(label);
  }

  #mayHave({ spec }: PersistentVolume): boolean {
    if (!this.#gates.ofOnePod) return false;
    const { accessModes = [] } = spec ?? {};
    return this.#gates.ofMany || (accessModes.length === 1 && accessModes[0] === "ReadWriteOncePod");
  }
}

/**
 * The label of files that a process of these options may use: role and type are the policy's, for the type is one of
 * files. Undefined without a level: the runtime would choose one, and nobody knows which.
 */
export function fileLabel({ user, level }: SELinuxOptions, defaultLabel: string): string | undefined {
  const [defaultUser, role, type] = defaultLabel.split(":");
  if (!level || type === undefined) return undefined;
  return [user || defaultUser, role, type, level].join(":");
}

/** Part of it is what somebody wrote into a pod: a quote in it would end the option, and begin others. */
function checked(label: string): string {
  if (/^[\w.:,-]+$/.test(label) && label.length <= longestLabel) return label;
  throw new Error(`${JSON.stringify(label.slice(0, 256))} is not an SELinux label`);
}

/** For mount(8); the quotes keep the commas of a level together. */
export function contextOption(label: string): string {
  return `context="${label}"`;
}

/** The label that something is mounted with, by its options in the mount table. */
export function mountedLabel(superOptions: readonly string[]): string | undefined {
  const [, quoted, plain] = /(?:^|,)context=(?:"([^"]*)"|([^,]*))/.exec(superOptions.join(",")) ?? [];
  return quoted ?? plain;
}

/** Whether files at the path can have labels of their own. */
export async function takesLabels(path: string): Promise<boolean> {
  const mount = mountOf(path, await readMounts());
  return mount !== undefined && [...mount.options, ...mount.superOptions].includes("seclabel");
}

/** What a pod is told that wants a volume with a label while another one still has it with a different one. */
export function otherLabelError(volume: string): Error {
  return new Error(
    `waiting for unmount of volume "${volume}", because it is already mounted to a different pod with a different SELinux label`,
  );
}
