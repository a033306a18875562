import {
  NamespaceMode,
  PodSandbox,
  type PodSandboxFilter,
  PodSandboxState,
  PodSandboxStatus,
} from "../../../connections/cri/index.ts";
import type { InspectedContainer, ListedContainer } from "../engine/index.ts";
import { hasLabels } from "./container-status.ts";
import { createdAtOf, givenTexts, runtimeHandlerLabel } from "./labels.ts";
import { parseName } from "./names.ts";

const states = { ready: PodSandboxState.SANDBOX_READY, notReady: PodSandboxState.SANDBOX_NOTREADY } as const;
export type SandboxReadiness = keyof typeof states;

export function criSandbox(listed: ListedContainer, readiness: SandboxReadiness): PodSandbox | undefined {
  const name = parseName(listed.name);
  if (name === undefined) return undefined;
  const { pod, namespace, uid, attempt } = name;
  return PodSandbox.fromPartial({
    id: listed.id,
    metadata: { name: pod, namespace, uid, attempt },
    state: states[readiness],
    createdAt: createdAtOf(listed.labels, listed.createdAt),
    ...givenTexts(listed.labels),
    runtimeHandler: listed.labels[runtimeHandlerLabel] ?? "",
  });
}

/** A sandbox that Docker has lost, of which only the note on disk is left: it can be stopped and removed. */
export function forgottenSandbox(id: string, name: { readonly pod: string; readonly namespace: string }): PodSandbox {
  return PodSandbox.fromPartial({
    id,
    metadata: { name: name.pod, namespace: name.namespace },
    state: PodSandboxState.SANDBOX_NOTREADY,
  });
}

export function criSandboxStatus(
  sandbox: InspectedContainer,
  readiness: SandboxReadiness,
  addresses: readonly string[],
): PodSandboxStatus {
  const name = parseName(sandbox.name);
  const { networkMode, ipcMode, pidMode } = sandbox.host;
  const node = (mode: string, otherwise: NamespaceMode): NamespaceMode =>
    mode === "host" ? NamespaceMode.NODE : otherwise;
  const [ip = "", ...others] = readiness === "ready" ? addresses : [];
  return PodSandboxStatus.fromPartial({
    id: sandbox.id,
    metadata: {
      name: name?.pod ?? "",
      namespace: name?.namespace ?? "",
      uid: name?.uid ?? "",
      attempt: name?.attempt ?? 0,
    },
    state: states[readiness],
    createdAt: createdAtOf(sandbox.labels, sandbox.createdAt),
    network: { ip, additionalIps: others.map((other) => ({ ip: other })) },
    linux: {
      namespaces: {
        options: {
          network: node(networkMode, NamespaceMode.POD),
          ipc: node(ipcMode, NamespaceMode.POD),
          pid: node(pidMode, NamespaceMode.CONTAINER),
        },
      },
    },
    ...givenTexts(sandbox.labels),
    runtimeHandler: sandbox.labels[runtimeHandlerLabel] ?? "",
  });
}

export function fitsSandbox(sandbox: PodSandbox, filter: PodSandboxFilter | undefined): boolean {
  if (filter === undefined) return true;
  return (
    sandbox.id.startsWith(filter.id) &&
    (filter.state === undefined || sandbox.state === filter.state.state) &&
    hasLabels(sandbox.labels, filter.labelSelector)
  );
}
