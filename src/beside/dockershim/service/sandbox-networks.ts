import { CriError, NamespaceMode, type PodSandboxConfig, Protocol } from "../../../connections/cri/index.ts";
import { readAddressesOf } from "../../../connections/host/index.ts";
import { messageOf, never } from "../../../ground/base/index.ts";
import type { SandboxCheckpoint } from "../checkpoint-form.ts";
import type { InspectedContainer, ListedContainer } from "../engine/index.ts";
import { createdAtLabel } from "../mapping/labels.ts";
import { parseName } from "../mapping/names.ts";
import { protocolWord } from "../mapping/sandbox-body.ts";
import type { SandboxReadiness } from "../mapping/sandbox-status.ts";
import { capabilitiesOf, portCapability } from "../network/capabilities.ts";
import { interfaceName } from "../network/plugin-call.ts";
import type { ShimContext } from "./context.ts";

type NetworkPorts = Pick<ShimContext, "checkpoints" | "cni" | "metrics">;

/** The networks of sandboxes, and the notes on disk that lead to them. */
export class SandboxNetworks {
  readonly #ports: NetworkPorts;
  /** Without a network any more, as far as this shim knows. */
  readonly #networkless = new Set<string>();

  constructor(ports: NetworkPorts) {
    this.#ports = ports;
  }

  /** Gives it a network, where it is to have one of its own. */
  async setUp(
    id: string,
    config: PodSandboxConfig,
    { netns, podCidr }: { readonly netns: string; readonly podCidr: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { cni, metrics } = this.#ports;
    const checkpoint = checkpointOf(config);
    if (cni === undefined || checkpoint.hostNetwork) return;
    const pod = { sandboxId: id, pod: checkpoint.pod, namespace: checkpoint.namespace };
    try {
      await metrics.network("set_up_pod", signal, () => cni.setUp(pod, netns, capabilitiesOf(config, podCidr), signal));
    } catch (error) {
      throw new CriError("Unknown", "runPodSandbox", networkFailure("set up", id, checkpoint, error), error);
    }
  }

  async tearDown(
    id: string,
    checkpoint: SandboxCheckpoint,
    netns: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { cni, metrics } = this.#ports;
    if (cni === undefined || checkpoint.hostNetwork || this.#networkless.has(id)) return;
    const pod = { sandboxId: id, pod: checkpoint.pod, namespace: checkpoint.namespace };
    try {
      await metrics.network("tear_down_pod", signal, () => cni.tearDown(pod, netns, portsOf(checkpoint), signal));
    } catch (error) {
      signal.throwIfAborted();
      throw new CriError("Unknown", "stopPodSandbox", networkFailure("teardown", id, checkpoint, error), error);
    }
    this.#networkless.add(id);
  }

  async release(sandbox: InspectedContainer, signal: AbortSignal): Promise<void> {
    if (this.#networkless.has(sandbox.id)) return;
    await this.tearDown(sandbox.id, await this.#checkpointFor(sandbox), netnsOf(sandbox), signal);
  }

  async forget(id: string): Promise<void> {
    await this.#ports.checkpoints.remove(id);
    this.#networkless.delete(id);
  }

  /** Running is not enough: one whose making was cut off has no network, and must be made anew. */
  async readinessOf(
    sandbox: Pick<ListedContainer, "id" | "labels" | "state" | "networkMode">,
  ): Promise<SandboxReadiness> {
    if (sandbox.state !== "running" && sandbox.state !== "paused") return "notReady";
    const { cni } = this.#ports;
    // Those of another shim bring no note of their network with them.
    if (cni === undefined || sandbox.networkMode === "host" || sandbox.labels[createdAtLabel] === undefined)
      return "ready";
    return (await cni.addressesOf(sandbox.id)) === undefined ? "notReady" : "ready";
  }

  async addressesOf(sandbox: InspectedContainer): Promise<readonly string[]> {
    if (sandbox.host.networkMode === "host") return [];
    const { cni, metrics } = this.#ports;
    if (cni === undefined) return sandbox.addresses;
    const found = await metrics.network("get_pod_network_status", never, () => cni.addressesOf(sandbox.id));
    if (found !== undefined) return found;
    // A pod without an address is made anew; those of another shim have one, of which there is no note.
    const isOurs = sandbox.labels[createdAtLabel] !== undefined;
    return isOurs || !sandbox.state.running ? sandbox.addresses : readAddressesOf(sandbox.state.pid, interfaceName);
  }

  async #checkpointFor(sandbox: InspectedContainer): Promise<SandboxCheckpoint> {
    const noted = await this.#ports.checkpoints.read(sandbox.id);
    if (noted !== undefined) return noted;
    const name = parseName(sandbox.name);
    const hostNetwork = sandbox.host.networkMode === "host";
    return { pod: name?.pod ?? "", namespace: name?.namespace ?? "", hostNetwork, ports: [] };
  }
}

/** Undefined when it does not run: a name space goes with the last process in it. */
export function netnsOf({ state }: Pick<InspectedContainer, "state">): string | undefined {
  return state.running ? `/proc/${state.pid}/ns/net` : undefined;
}

export function checkpointOf(config: PodSandboxConfig): SandboxCheckpoint {
  return {
    pod: config.metadata?.name ?? "",
    namespace: config.metadata?.namespace ?? "",
    hostNetwork: config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE,
    ports: config.portMappings
      .filter(({ hostPort }) => hostPort !== 0)
      .map(({ protocol, containerPort, hostPort, hostIp }) => ({
        protocol: protocolWord(protocol),
        containerPort,
        hostPort,
        hostIp,
      })),
  };
}

function networkFailure(what: string, id: string, { pod, namespace }: SandboxCheckpoint, error: unknown): string {
  const action = what === "set up" ? "set up" : "tear down";
  return (
    `failed to ${what} sandbox container "${id}" network for pod "${pod}": ` +
    `networkPlugin cni failed to ${action} pod "${pod}_${namespace}" network: ${messageOf(error)}`
  );
}

const protocols = [Protocol.TCP, Protocol.UDP, Protocol.SCTP];

function portsOf({ ports }: SandboxCheckpoint) {
  return portCapability(
    ports.map((port) => ({
      ...port,
      protocol: protocols.find((one) => protocolWord(one) === port.protocol) ?? Protocol.TCP,
    })),
  );
}
