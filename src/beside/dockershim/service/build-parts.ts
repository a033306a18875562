import { dirname } from "node:path";
import type { ImageService, RuntimeService } from "../../../connections/cri/index.ts";
import { cgroupReader, readCgroupLayout } from "../../../connections/host/index.ts";
import { aFewAtOnce, isThere, messageOf, settleAtMost } from "../../../ground/base/index.ts";
import { isAbsent } from "../engine/index.ts";
import { listedStep } from "../mapping/container-status.ts";
import { typeLabel } from "../mapping/labels.ts";
import { StreamServer } from "../streaming/stream-server.ts";
import { afterEvent } from "./after-event.ts";
import { DockerContainers } from "./containers.ts";
import { logPathsOf, type ShimContext } from "./context.ts";
import { DockerEvents } from "./events.ts";
import { ImageCache } from "./image-cache.ts";
import { imageService } from "./image-service.ts";
import { Images } from "./images.ts";
import { LayerSizes } from "./layer-sizes.ts";
import { runtimeService } from "./runtime-service.ts";
import { DockerSandboxes } from "./sandboxes.ts";
import { Stats } from "./stats.ts";

export interface ShimParts {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly events: DockerEvents;
}

/** Makes the parts of the service and connects them. */
export async function buildParts(
  context: ShimContext,
  keep: <Part extends AsyncDisposable>(part: Part) => Part,
): Promise<ShimParts> {
  const { engine, clock, log, stamp, settings } = context;
  const imageCache = new ImageCache(engine);
  const images = new Images(context, imageCache);
  const containers = new DockerContainers(context, imageCache);
  let podCidr = "";
  const sandboxes = new DockerSandboxes(context, {
    containers,
    podCidr: () => podCidr,
    pullSandboxImage: async (signal) => {
      const image = { image: settings.sandboxImage, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
      await images.pull({ image, auth: undefined }, signal);
    },
  });
  const sizes = keep(new LayerSizes({ engine, clock, log, stamp }));
  const cgroups = cgroupReader(await readCgroupLayout());
  const stats = new Stats({ context, containers, sandboxes, cgroups, sizes });
  const events = new DockerEvents({
    engine,
    clock,
    log,
    onOpened: (signal) => catchUp(context, imageCache, sandboxes, signal),
    onContainer: (event, signal) => afterEvent(context, containers, sandboxes, event, signal),
    onImage: () => imageCache.forget(),
  });
  const server = keep(new StreamServer(context));
  await server.listen(settings.streamingAddress);
  const setPodCidr = (cidr: string): void => {
    podCidr = cidr;
  };
  const runtime = runtimeService({
    context,
    sandboxes,
    containers,
    stats,
    events,
    streams: server.requests,
    setPodCidr,
  });
  return { runtime, images: imageService(images), events };
}

/** Docker is there, for the first time or again: what may have changed meanwhile is forgotten, and logs go on. */
async function catchUp(
  context: ShimContext,
  imageCache: ImageCache,
  sandboxes: DockerSandboxes,
  signal: AbortSignal,
): Promise<void> {
  const { engine, facts, copies, log } = context;
  imageCache.forget();
  facts.forget();
  const info = await facts.info(signal);
  const listed = await engine.listContainers([`${typeLabel}=container`], signal);
  const outcomes = await settleAtMost(aFewAtOnce, listed, async (one) => {
    const step = listedStep(one);
    const paths = step === undefined ? undefined : logPathsOf(one, info);
    if (paths === undefined) return;
    // Whose log was taken away is not given a new one.
    if (step === "exited" && !(await isThere(dirname(paths.target)))) return;
    const copy = copies.ensure(one.id, paths);
    if (step === "exited") copy.finish();
  });
  const looks = await settleAtMost(aFewAtOnce, await sandboxes.listed(signal), ({ id }) => sandboxes.look(id, signal));
  signal.throwIfAborted();
  for (const outcome of [...outcomes, ...looks]) {
    if (outcome.status === "rejected" && !isAbsent(outcome.reason))
      log.warn("cannot go on with a container", { error: messageOf(outcome.reason) });
  }
}
