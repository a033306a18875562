import type { Pod } from "../../ground/model/index.ts";
import { type CommandIo, UsageError } from "./io.ts";
import type { InContainer } from "./local-client.ts";
import { visibleLine } from "./visible-text.ts";

/** Every container of a pod, in the order in which they start. */
export function allContainers({ metadata, spec }: Pod): readonly InContainer[] {
  const { namespace = "default", name: pod = "" } = metadata ?? {};
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  return [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => ({
    namespace,
    pod,
    container: name,
  }));
}

const defaultContainer = "kubectl.kubernetes.io/default-container";

/** The container that is meant: the one named, else the pod's default, else its first; which one, is said. */
export function whichContainer(pod: Pod, named: string | undefined, io: Pick<CommandIo, "stderr">): InContainer {
  const { namespace = "default", name = "", annotations } = pod.metadata ?? {};
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const all = [...containers, ...initContainers, ...ephemeralContainers].map((container) => container.name);
  const names = all.map(visibleLine).join(", ");
  if (named !== undefined && !all.includes(named)) {
    throw new UsageError(`pod ${namespace}/${name} has no container ${visibleLine(named)}, but ${names}`);
  }
  const standard = annotations?.[defaultContainer];
  const chosen = named ?? (standard !== undefined && all.includes(standard) ? standard : containers[0]?.name);
  if (chosen === undefined) throw new Error(`pod ${namespace}/${name} has no container`);
  if (named === undefined && all.length > 1 && chosen !== standard) {
    io.stderr.write(`nodelet: container ${visibleLine(chosen)} of ${names}; choose another with -c\n`);
  }
  return { namespace, pod: name, container: chosen };
}
