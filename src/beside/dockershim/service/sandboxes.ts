import {
  CriError,
  type PodSandbox,
  type PodSandboxConfig,
  type PodSandboxFilter,
  type PodSandboxStatus,
  type RunPodSandboxRequest,
} from "../../../connections/cri/index.ts";
import { aFewAtOnce, mapAtMost, messageOf, withDeadline } from "../../../ground/base/index.ts";
import type { SandboxCheckpoint } from "../checkpoint-form.ts";
import { type InspectedContainer, isAbsent, type ListedContainer } from "../engine/index.ts";
import { createdAtLabel, isPart, typeLabel } from "../mapping/labels.ts";
import { sandboxName } from "../mapping/names.ts";
import { sandboxBody } from "../mapping/sandbox-body.ts";
import { criSandbox, criSandboxStatus, fitsSandbox, forgottenSandbox } from "../mapping/sandbox-status.ts";
import type { DockerContainers } from "./containers.ts";
import type { ShimContext } from "./context.ts";
import { createNamed } from "./creation.ts";
import { failure, noSuch } from "./failures.ts";
import { removeWholly } from "./removal.ts";
import { writeResolvConf } from "./resolv-conf.ts";
import { checkpointOf, netnsOf, SandboxNetworks } from "./sandbox-networks.ts";
import { killRunning } from "./stopping.ts";

export interface DockerSandboxPorts {
  readonly containers: DockerContainers;
  /** Pulls the sandbox image. */
  readonly pullSandboxImage: (signal: AbortSignal) => Promise<void>;
  readonly podCidr: () => string;
}

const killsAtOnce = 16;
/** Longer than plugins have for a network. */
const takenBackWithinMs = 5 * 60_000;

/** DockerSandboxes: a container each that holds the pod's namespaces, and the pod's network. */
export class DockerSandboxes {
  readonly #context: ShimContext;
  readonly #ports: DockerSandboxPorts;
  /** Being made, by their stamps: nobody is to see them before they are whole. */
  readonly #unfinished = new Set<string>();
  readonly #networks: SandboxNetworks;

  constructor(context: ShimContext, ports: DockerSandboxPorts) {
    this.#context = context;
    this.#ports = ports;
    this.#networks = new SandboxNetworks(context);
  }

  async run({ config, runtimeHandler }: RunPodSandboxRequest, signal: AbortSignal): Promise<string> {
    const metadata = config?.metadata;
    if (config === undefined || metadata === undefined) {
      throw new CriError("Unknown", "runPodSandbox", "sandbox config must include metadata");
    }
    const { facts, settings } = this.#context;
    const info = await facts.info(signal);
    if (runtimeHandler !== "" && runtimeHandler !== "docker" && !info.runtimes.includes(runtimeHandler)) {
      throw new CriError(
        "Unknown",
        "runPodSandbox",
        `failed to get sandbox runtime: no runtime for "${runtimeHandler}" is configured`,
      );
    }
    const { name: pod, namespace, uid, attempt } = metadata;
    const name = sandboxName({ pod, namespace, uid, attempt });
    const createdAt = this.#context.stamp();
    this.#unfinished.add(String(createdAt));
    try {
      const body = sandboxBody(config, {
        image: settings.sandboxImage,
        createdAt,
        cgroupDriver: info.cgroupDriver,
        network: settings.network.plugin,
        runtimeHandler,
        lowestOomScore: this.#context.lowestOomScore,
      });
      const id = await this.#create(name, body, signal);
      await this.#finish(id, config, signal);
      return id;
    } catch (error) {
      throw failure("runPodSandbox", error);
    } finally {
      this.#unfinished.delete(String(createdAt));
    }
  }

  /** The image is nearly always there: it is asked for only when Docker misses it. */
  async #create(name: string, body: object, signal: AbortSignal): Promise<string> {
    try {
      return await createNamed(this.#context, "sandbox", name, body, signal);
    } catch (error) {
      if (!isAbsent(error)) throw error;
      await this.#ports.pullSandboxImage(signal);
      return await createNamed(this.#context, "sandbox", name, body, signal);
    }
  }

  async #finish(id: string, config: PodSandboxConfig, signal: AbortSignal): Promise<void> {
    const { engine, checkpoints } = this.#context;
    const checkpoint = checkpointOf(config);
    let netns: string | undefined;
    try {
      // The note must be there before the network is; both take their time.
      const [saved, started] = await Promise.allSettled([
        checkpoints.save(id, checkpoint),
        engine.startContainer(id, signal).then(() => engine.inspectContainer(id, signal)),
      ]);
      if (started.status === "rejected") throw started.reason;
      if (saved.status === "rejected") throw saved.reason;
      netns = netnsOf(started.value);
      if (netns === undefined) throw new Error(`sandbox container "${id}" has ended: ${ended(started.value)}`);
      await writeResolvConf(started.value.resolvConfPath, config.dnsConfig);
      await this.#networks.setUp(id, config, { netns, podCidr: this.#ports.podCidr() }, signal);
    } catch (error) {
      await this.#takeBack(id, checkpoint, netns);
      throw error;
    }
  }

  /** What could not be finished goes at once; what can't go now stays visible as not ready, for later. */
  async #takeBack(id: string, checkpoint: SandboxCheckpoint, netns: string | undefined): Promise<void> {
    const { clock, signal, log } = this.#context;
    const late = (): Error => new Error(`it took longer than ${takenBackWithinMs / 1000} s`);
    try {
      await withDeadline(clock, takenBackWithinMs, late, signal, async (bounded) => {
        await this.#networks.tearDown(id, checkpoint, netns, bounded);
        await removeWholly(this.#context, id, bounded);
      });
      await this.#networks.forget(id);
    } catch (error) {
      log.warn("a sandbox that could not be made could not be removed either", {
        sandbox: id,
        error: messageOf(error),
      });
    }
  }

  async stop(asked: string, signal: AbortSignal): Promise<void> {
    const found = await this.#findOrNote("stopPodSandbox", asked, signal);
    try {
      const id = found.type === "found" ? found.sandbox.id : asked;
      await this.#killContainers(id, signal);
      if (found.type === "noted") return await this.#networks.tearDown(id, found.checkpoint, undefined, signal);
      await this.#networks.release(found.sandbox, signal);
      if (found.sandbox.state.running) await killRunning(this.#context, id, signal);
      // Docker's lists lag a moment behind until it has been asked about the container itself.
      await this.#context.engine.inspectContainer(id, signal).catch(unlessAbsent);
    } catch (error) {
      throw failure("stopPodSandbox", error);
    }
  }

  async #killContainers(sandboxId: string, signal: AbortSignal): Promise<void> {
    const running = (await this.#ports.containers.listed(sandboxId, signal)).filter(isRunning);
    await mapAtMost(killsAtOnce, running, async (one) => {
      try {
        await this.#ports.containers.stop(one.id, 0, signal);
      } catch (error) {
        // Said of the sandbox, it would mean that there is nothing left to stop.
        if (!isNotFound(error)) throw error;
      }
    });
  }

  async remove(asked: string, signal: AbortSignal): Promise<void> {
    const found = await this.#findOrNote("removePodSandbox", asked, signal).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (found === undefined) return;
    try {
      const id = found.type === "found" ? found.sandbox.id : asked;
      // Those that use the network go first, then the network, and last what holds both.
      const containers = await this.#ports.containers.listed(id, signal);
      await mapAtMost(killsAtOnce, containers, (one) =>
        this.#ports.containers.removeFound(one.id, isRunning(one), signal),
      );
      if (found.type === "noted") await this.#networks.tearDown(id, found.checkpoint, undefined, signal);
      else {
        await this.#networks.release(found.sandbox, signal);
        await removeWholly(this.#context, id, signal);
      }
      await this.#networks.forget(id);
    } catch (error) {
      throw failure("removePodSandbox", error);
    }
  }

  async list(filter: PodSandboxFilter | undefined, signal: AbortSignal): Promise<readonly PodSandbox[]> {
    const listed = await this.listed(signal);
    const messages = await mapAtMost(aFewAtOnce, listed, async (one) =>
      criSandbox(one, await this.#networks.readinessOf(one)),
    );
    const known = messages.filter((message) => message !== undefined).filter((message) => fitsSandbox(message, filter));
    const isFiltered =
      filter !== undefined &&
      (filter.id !== "" || filter.state !== undefined || Object.keys(filter.labelSelector).length > 0);
    return isFiltered ? known : [...known, ...(await this.#forgotten(signal))];
  }

  /** As Docker lists them, without those that are being made. */
  async listed(signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const listed = await this.#context.engine.listContainers([`${typeLabel}=podsandbox`], signal);
    return listed.filter((one) => isPart(one, "podsandbox") && !this.#unfinished.has(one.labels[createdAtLabel] ?? ""));
  }

  /** DockerSandboxes that Docker has lost: whoever lists them stops and removes them, and so their networks are released. */
  async #forgotten(signal: AbortSignal): Promise<readonly PodSandbox[]> {
    const { checkpoints, engine } = this.#context;
    const noted = await checkpoints.list();
    if (noted.length === 0) return [];
    // Asked after the notes were read: a sandbox that was made in between is in this list.
    const present = new Set((await engine.listContainers([`${typeLabel}=podsandbox`], signal)).map(({ id }) => id));
    const lost = await mapAtMost(
      aFewAtOnce,
      noted.filter((id) => !present.has(id)),
      async (id) => {
        const checkpoint = await checkpoints.read(id);
        return checkpoint === undefined ? [] : [forgottenSandbox(id, checkpoint)];
      },
    );
    return lost.flat();
  }

  async status(asked: string, signal: AbortSignal): Promise<PodSandboxStatus> {
    return await this.statusOf(await this.find("podSandboxStatus", asked, signal));
  }

  /** Looks whether a sandbox is still the one that was given its network. */
  async look(id: string, signal: AbortSignal): Promise<void> {
    const { cni, looks } = this.#context;
    looks.forget(id);
    const look = await looks.at(id, signal);
    const netns = look.type === "found" ? netnsOf(look.container) : undefined;
    if (netns !== undefined) await cni?.seen(id, netns);
  }

  async statusOf(sandbox: InspectedContainer): Promise<PodSandboxStatus> {
    const readiness = await this.#networks.readinessOf({
      ...sandbox,
      state: sandbox.state.running ? "running" : "exited",
      networkMode: sandbox.host.networkMode,
    });
    return criSandboxStatus(sandbox, readiness, await this.#networks.addressesOf(sandbox));
  }

  /** One of ours, by its id or the beginning of it. */
  async find(operation: string, asked: string, signal: AbortSignal): Promise<InspectedContainer> {
    if (asked === "") throw new CriError("Unknown", operation, "sandbox id should not be empty");
    let found: InspectedContainer;
    try {
      found = await this.#context.engine.inspectContainer(asked, signal);
    } catch (error) {
      throw failure(operation, error);
    }
    if (!isPart(found, "podsandbox") || !found.id.startsWith(asked)) throw noSuch(operation, `sandbox "${asked}"`);
    return found;
  }

  /** A sandbox that has to be there and running for what is asked. */
  async findReady(operation: string, asked: string, signal: AbortSignal): Promise<InspectedContainer> {
    const found = await this.find(operation, asked, signal);
    if (!found.state.running)
      throw noSuch(operation, `sandbox container "${found.id}" is not running: task ${found.id}`);
    return found;
  }

  async #findOrNote(
    operation: string,
    asked: string,
    signal: AbortSignal,
  ): Promise<{ type: "found"; sandbox: InspectedContainer } | { type: "noted"; checkpoint: SandboxCheckpoint }> {
    try {
      return { type: "found", sandbox: await this.find(operation, asked, signal) };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const checkpoint = await this.#context.checkpoints.read(asked);
      if (checkpoint === undefined) throw error;
      return { type: "noted", checkpoint };
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof CriError && error.code === "NotFound";
}

function unlessAbsent(error: unknown): void {
  if (!isAbsent(error)) throw error;
}

function ended({ state }: InspectedContainer): string {
  return state.error === "" ? `exit code ${state.exitCode}` : state.error;
}

function isRunning({ state }: ListedContainer): boolean {
  return state === "running" || state === "paused" || state === "restarting";
}
