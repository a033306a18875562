import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type Container,
  type ContainerFilter,
  type ContainerStatus,
  type CreateContainerRequest,
  CriError,
  type UpdateContainerResourcesRequest,
} from "../../../connections/cri/index.ts";
import { aFewAtOnce, mapAtMost, messageOf } from "../../../ground/base/index.ts";
import { type InspectedContainer, isAbsent, type ListedContainer } from "../engine/index.ts";
import { containerBody } from "../mapping/container-body.ts";
import {
  criContainer,
  criContainerStatus,
  fitsContainer,
  type Life,
  lifeOf,
  listedStep,
  stateWord,
} from "../mapping/container-status.ts";
import { isPart, logPathLabel, sandboxIdLabel, typeLabel } from "../mapping/labels.ts";
import { containerName } from "../mapping/names.ts";
import { updateFields } from "../mapping/resources.ts";
import { MappingError, seccompFileOf } from "../mapping/security.ts";
import { logPathsOf, type PartOfPod, type ShimContext } from "./context.ts";
import { createNamed } from "./creation.ts";
import { failure, noSuch } from "./failures.ts";
import type { ImageCache } from "./image-cache.ts";
import { JustEnded } from "./just-ended.ts";
import { withMountPoints } from "./mount-points.ts";
import { removeWholly } from "./removal.ts";
import { stopRunning } from "./stopping.ts";
import { UnstartedContainers } from "./unstarted.ts";

const longestSeccompProfile = 1024 * 1024;

/** DockerContainers of pods. */
export class DockerContainers {
  readonly #context: ShimContext;
  readonly #images: ImageCache;
  readonly #unstarted: UnstartedContainers;
  readonly #justEnded: JustEnded;

  constructor(context: ShimContext, images: ImageCache) {
    this.#context = context;
    this.#images = images;
    this.#unstarted = new UnstartedContainers(context.looks);
    this.#justEnded = new JustEnded(context.clock);
  }

  async create(request: CreateContainerRequest, sandbox: InspectedContainer, signal: AbortSignal): Promise<string> {
    const { config, sandboxConfig } = request;
    const container = config?.metadata;
    const pod = sandboxConfig?.metadata;
    if (config === undefined || container === undefined) {
      throw new CriError("Unknown", "createContainer", "container config must include metadata");
    }
    if (sandboxConfig === undefined || pod === undefined) {
      throw new CriError("Unknown", "createContainer", `sandbox config is nil for container "${container.name}"`);
    }
    const { engine, facts } = this.#context;
    const info = await facts.info(signal);
    const logPath = config.logPath === "" ? "" : join(sandboxConfig.logDirectory, config.logPath);
    const body = containerBody(config, sandboxConfig, {
      api: await engine.api(signal),
      selinux: info.securityOptions.some((option) => option.startsWith("name=selinux")),
      sandboxId: sandbox.id,
      runtime: sandbox.host.runtime,
      createdAt: this.#context.stamp(),
      logPath,
      cgroupDriver: info.cgroupDriver,
      lowestOomScore: this.#context.lowestOomScore,
      seccomp: await seccompContent(seccompFileOf(config.linux?.securityContext?.seccomp)),
    });
    const name = containerName({
      container: container.name,
      pod: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      attempt: container.attempt,
    });
    try {
      const sources = config.mounts.map(({ hostPath }) => hostPath);
      const id = await withMountPoints(sources, () => createNamed(this.#context, "container", name, body, signal));
      this.#unstarted.made({ id, name, labels: { [typeLabel]: "container", [logPathLabel]: logPath } });
      return id;
    } catch (error) {
      const image = config.image?.image ?? "";
      throw failure("createContainer", error, isAbsent(error) ? `failed to resolve image "${image}"` : "");
    }
  }

  async start(asked: string, signal: AbortSignal): Promise<void> {
    const { engine, copies, facts } = this.#context;
    const container = await this.#startable(asked, signal);
    const { id } = container;
    try {
      const started = await engine.startContainer(id, signal);
      if (!started) throw new CriError("Unknown", "startContainer", `container "${id}" is in CONTAINER_RUNNING state`);
    } catch (error) {
      const isGone = isAbsent(error) && (await this.#isGone(id, signal));
      if (isGone) throw failure("startContainer", error);
      if (error instanceof CriError) throw error;
      throw new CriError("Unknown", "startContainer", `failed to start container "${id}": ${messageOf(error)}`, error);
    } finally {
      this.#unstarted.forget(id);
    }
    const paths = logPathsOf(container, await facts.info(signal));
    if (paths !== undefined) copies.ensure(id, paths);
  }

  /** One that was never started; what this shim made it need not ask for. */
  async #startable(asked: string, signal: AbortSignal): Promise<PartOfPod> {
    const made = this.#unstarted.startable(asked);
    if (made !== undefined) return made;
    const found = await this.find("startContainer", asked, signal);
    const life = lifeOf(found);
    if (life.step !== "created") throw wrongState("startContainer", found.id, life);
    return found;
  }

  async stop(asked: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const found = await this.find("stopContainer", asked, signal);
    if (!found.state.running) return;
    await stopRunning(this.#context, { id: found.id, stopSignal: found.config.stopSignal }, graceMs, signal);
    await this.#seeEnded(found.id, signal);
  }

  async remove(asked: string, signal: AbortSignal): Promise<void> {
    let found: InspectedContainer;
    try {
      found = await this.find("removeContainer", asked, signal);
    } catch (error) {
      if (error instanceof CriError && error.code === "NotFound") return;
      throw error;
    }
    await this.removeFound(found.id, found.state.running, signal);
  }

  /** Ends it first where it runs, so that its log is whole before Docker throws away what it is made of. */
  async removeFound(id: string, isRunning: boolean, signal: AbortSignal): Promise<void> {
    if (isRunning) await stopRunning(this.#context, { id, stopSignal: "" }, 0, signal);
    await this.#context.copies.finish(id, signal);
    this.#justEnded.forget(id);
    await removeWholly(this.#context, id, signal);
    this.#context.copies.drop(id);
    this.#unstarted.forget(id);
  }

  async list(filter: ContainerFilter | undefined, signal: AbortSignal): Promise<readonly Container[]> {
    const listed = await this.listed(filter?.podSandboxId ?? "", signal);
    const messages = await mapAtMost(aFewAtOnce, listed, async (one) =>
      criContainer(one, listedStep(one) ?? (await this.#unstarted.step(one.id, signal))),
    );
    return messages.filter((message) => message !== undefined).filter((message) => fitsContainer(message, filter));
  }

  /** As Docker lists them; of one sandbox, or of all. */
  async listed(sandboxId: string, signal: AbortSignal): Promise<readonly ListedContainer[]> {
    const ofSandbox = sandboxId === "" ? [] : [`${sandboxIdLabel}=${sandboxId}`];
    const listed = await this.#context.engine.listContainers([`${typeLabel}=container`, ...ofSandbox], signal);
    if (sandboxId === "") this.#unstarted.forgetAllBut(new Set(listed.map(({ id }) => id)));
    return listed.filter((one) => isPart(one, "container"));
  }

  async status(asked: string, signal: AbortSignal): Promise<ContainerStatus> {
    const found = this.#justEnded.get(asked) ?? (await this.find("containerStatus", asked, signal));
    return await this.#statusOf(found, signal);
  }

  /** Docker has told that it ended, and was asked about it since. */
  async statusAtEnd(found: InspectedContainer, signal: AbortSignal): Promise<ContainerStatus> {
    this.#justEnded.saw(found);
    return await this.#statusOf(found, signal);
  }

  /** Something happens to it: what was seen of it counts no more. */
  changed(id: string): void {
    this.#justEnded.forget(id);
  }

  async #statusOf(found: InspectedContainer, signal: AbortSignal): Promise<ContainerStatus> {
    // Whoever learns of the end may read the log at once.
    if (!found.state.running) await this.#context.copies.finish(found.id, signal);
    return criContainerStatus(found, await this.#images.get(found.imageId, signal));
  }

  async update({ containerId, linux }: UpdateContainerResourcesRequest, signal: AbortSignal): Promise<void> {
    const found = await this.find("updateContainerResources", containerId, signal);
    const body = updateFields(linux);
    if (Object.keys(body).length === 0) return;
    try {
      await this.#context.engine.updateContainer(found.id, body, signal);
    } catch (error) {
      throw failure("updateContainerResources", error, `failed to update container "${found.id}"`);
    }
  }

  async reopenLog(asked: string, signal: AbortSignal): Promise<void> {
    const found = await this.find("reopenContainerLog", asked, signal);
    if (!found.state.running) throw new CriError("Unknown", "reopenContainerLog", "container is not running");
    if (await this.#context.copies.reopen(found.id, signal)) return;
    const paths = logPathsOf(found, await this.#context.facts.info(signal));
    if (paths !== undefined) this.#context.copies.ensure(found.id, paths);
  }

  /** One of ours, by its id or the beginning of it. What is no part of a pod does not exist for us. */
  async find(operation: string, asked: string, signal: AbortSignal): Promise<InspectedContainer> {
    if (asked === "") throw new CriError("Unknown", operation, "container id should not be empty");
    let found: InspectedContainer;
    try {
      found = await this.#context.engine.inspectContainer(asked, signal);
    } catch (error) {
      throw failure(operation, error);
    }
    if (!isPart(found, "container") || !found.id.startsWith(asked)) throw noSuch(operation, `container "${asked}"`);
    return found;
  }

  /** A container that has to run for what is asked. */
  async findRunning(operation: string, asked: string, signal: AbortSignal): Promise<InspectedContainer> {
    const found = await this.find(operation, asked, signal);
    const life = lifeOf(found);
    if (life.step !== "running") throw wrongState(operation, found.id, life);
    return found;
  }

  /** Docker's lists lag a moment behind; once it has been asked about the container itself they are up to date. */
  async #seeEnded(id: string, signal: AbortSignal): Promise<void> {
    await this.#context.engine.inspectContainer(id, signal).catch((error: unknown) => {
      if (!isAbsent(error)) throw error;
    });
    await this.#context.copies.finish(id, signal);
  }

  async #isGone(id: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#context.engine.inspectContainer(id, signal);
      return false;
    } catch (error) {
      return isAbsent(error);
    }
  }
}

function wrongState(operation: string, id: string, life: Life): CriError {
  return new CriError("Unknown", operation, `container "${id}" is in ${stateWord(life)} state`);
}

async function seccompContent(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    const found = await stat(path);
    // A pipe would keep a thread for as long as nobody writes to it.
    if (!found.isFile()) throw new Error("it is no file");
    if (found.size > longestSeccompProfile) throw new Error("it is too long");
    return await readFile(path, "utf8");
  } catch (error) {
    throw new MappingError(`cannot load seccomp profile "${path}": ${messageOf(error)}`, { cause: error });
  }
}
