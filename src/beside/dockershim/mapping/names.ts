// Names of Docker containers that are parts of pods: "k8s_<container>_<pod>_<namespace>_<uid>_<attempt>". An underscore
// is in none of Kubernetes' names.

export interface SandboxName {
  readonly pod: string;
  readonly namespace: string;
  readonly uid: string;
  readonly attempt: number;
}

export interface ContainerName extends SandboxName {
  readonly container: string;
}

const prefix = "k8s";
const sandboxWord = "POD";

export function sandboxName(name: SandboxName): string {
  return containerName({ ...name, container: sandboxWord });
}

export function containerName({ container, pod, namespace, uid, attempt }: ContainerName): string {
  return [prefix, container, pod, namespace, uid, attempt].join("_");
}

/** Undefined for the name of a container that is no part of a pod. A seventh part is what made the name unique. */
export function parseName(name: string): ContainerName | undefined {
  const [first, container, pod, namespace, uid, attempt, ...rest] = name.replace(/^\//, "").split("_");
  if (first !== prefix || rest.length > 1) return undefined;
  if (!container || !pod || !namespace || uid === undefined || attempt === undefined) return undefined;
  const number = Number(attempt);
  if (!/^\d{1,10}$/.test(attempt) || number > 0xffff_ffff) return undefined;
  return { container, pod, namespace, uid, attempt: number };
}

/** A name for what could not have its own because Docker still holds on to it. */
export function distinctName(name: string, random: number): string {
  return `${name}_${(random >>> 0).toString(16).padStart(8, "0")}`;
}
