import { table } from "../../ground/base/index.ts";
import type { Envelope } from "./gen/containerd/events.ts";
import {
  ContainerCreate,
  ContainerDelete,
  SandboxCreate,
  SandboxExit,
  SandboxStart,
  TaskExit,
  TaskOOM,
  TaskPaused,
  TaskResumed,
  TaskStart,
} from "./gen/containerd/payloads.ts";
import type { RuntimeEvent } from "./runtime-event.ts";

/** The namespace containerd's CRI plugin keeps its containers in. */
export const criNamespace = "k8s.io";

// Exec probes cause exec-added, exec-started and image pulls cause content and snapshot events: none concern a pod's state.
const topics = [
  "/tasks/start",
  "/tasks/exit",
  "/tasks/oom",
  "/tasks/paused",
  "/tasks/resumed",
  "/containers/create",
  "/containers/delete",
  "/sandboxes/create",
  "/sandboxes/start",
  "/sandboxes/exit",
  // The sandbox service publishes its topics without the slash.
  "sandboxes/create",
  "sandboxes/start",
  "sandboxes/exit",
];

/** What to subscribe to: one filter per topic, any of which lets an event pass. */
export const eventFilters: readonly string[] = topics.map((topic) => `namespace==${criNamespace},topic=="${topic}"`);

type HintKind = Exclude<RuntimeEvent["kind"], "gap">;

interface Payload {
  readonly kind: HintKind;
  /** The container or sandbox concerned; undefined when the event is only about an exec in it. */
  idOf(bytes: Uint8Array): string | undefined;
}

const payloads: Readonly<Record<string, Payload>> = table({
  ContainerCreate: { kind: "created", idOf: (bytes) => ContainerCreate.decode(bytes).id },
  ContainerDelete: { kind: "deleted", idOf: (bytes) => ContainerDelete.decode(bytes).id },
  TaskStart: { kind: "started", idOf: (bytes) => TaskStart.decode(bytes).containerId },
  TaskExit: { kind: "stopped", idOf: (bytes) => ofFirstProcess(TaskExit.decode(bytes)) },
  TaskOOM: { kind: "oom", idOf: (bytes) => TaskOOM.decode(bytes).containerId },
  TaskPaused: { kind: "changed", idOf: (bytes) => TaskPaused.decode(bytes).containerId },
  TaskResumed: { kind: "changed", idOf: (bytes) => TaskResumed.decode(bytes).containerId },
  SandboxCreate: { kind: "created", idOf: (bytes) => SandboxCreate.decode(bytes).sandboxId },
  SandboxStart: { kind: "started", idOf: (bytes) => SandboxStart.decode(bytes).sandboxId },
  SandboxExit: { kind: "stopped", idOf: (bytes) => SandboxExit.decode(bytes).sandboxId },
});

/** The hint in an event of containerd; undefined for events that concern no container or another namespace. */
export function hintFromEnvelope({ namespace, event }: Envelope): RuntimeEvent | undefined {
  if (event === undefined || (namespace !== "" && namespace !== criNamespace)) return undefined;
  const name = /(?:^|\/)containerd\.events\.(\w+)$/.exec(event.typeUrl)?.[1];
  const payload = name === undefined ? undefined : payloads[name];
  const id = payload?.idOf(event.value);
  return payload === undefined || id === undefined ? undefined : { kind: payload.kind, id };
}

function ofFirstProcess({
  containerId,
  id,
}: {
  readonly containerId: string;
  readonly id: string;
}): string | undefined {
  return id === "" || id === containerId ? containerId : undefined;
}
