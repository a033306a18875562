import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  ContainerConfig,
  ContainerState,
  CriClient,
  ImageSpec,
  LinuxPodSandboxConfig,
  LinuxSandboxSecurityContext,
  NamespaceMode,
  NamespaceOption,
  PodSandboxConfig,
} from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import type { PodUid } from "../../src/ground/model/index.ts";
import { ImageAgeFile, ImageGc, readImageFs, sandboxImageOf } from "../../src/pod/images/index.ts";
import { ContainerGc, PodObserver, runtimeLabels } from "../../src/pod/runtime/index.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { makeImage } from "../support/images.ts";

let containerd: TestContainerd;
let cri: CriClient;
let work: string;

before(async () => {
  containerd = await startContainerd();
  cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
  work = await mkdtemp(join(containerd.stateDir, "gc-"));
  await mkdir(join(work, "containers"));
});

after(async () => {
  cri.close();
  await containerd[Symbol.asyncDispose]();
});

const { signal } = new AbortController();
const none = new Uint8Array();

interface TestPod {
  readonly uid: string;
  readonly sandboxId: string;
  readonly config: PodSandboxConfig;
}

/** A pod on the host's network, with its log directory. */
async function runPod(uid: string): Promise<TestPod> {
  const logDirectory = join(work, "pods", `ns_${uid}_${uid}`);
  await mkdir(logDirectory, { recursive: true });
  const namespaceOptions = { ...NamespaceOption.decode(none), network: NamespaceMode.NODE };
  const config: PodSandboxConfig = {
    ...PodSandboxConfig.decode(none),
    metadata: { name: uid, namespace: "ns", uid, attempt: 0 },
    logDirectory,
    labels: { [runtimeLabels.podUid]: uid },
    linux: {
      ...LinuxPodSandboxConfig.decode(none),
      cgroupParent: `${containerd.cgroupRoot}/${uid}`,
      securityContext: { ...LinuxSandboxSecurityContext.decode(none), namespaceOptions },
    },
  };
  const { podSandboxId } = await cri.runtime.runPodSandbox({ config, runtimeHandler: "" });
  return { uid, sandboxId: podSandboxId, config };
}

/** Runs a container of the pod, with the link that log collectors follow, and waits until it is in its state. */
async function runContainer(
  pod: TestPod,
  name: string,
  attempt: number,
  options: { readonly image?: string; readonly stays?: boolean } = {},
): Promise<string> {
  const { image = containerd.images.busybox, stays = false } = options;
  const logPath = join(name, `${attempt}.log`);
  await mkdir(join(pod.config.logDirectory, name), { recursive: true });
  const { containerId } = await cri.runtime.createContainer({
    podSandboxId: pod.sandboxId,
    sandboxConfig: pod.config,
    config: {
      ...ContainerConfig.decode(none),
      metadata: { name, attempt },
      image: { ...ImageSpec.decode(none), image },
      command: stays ? ["sleep", "1000"] : ["echo", "done"],
      labels: { [runtimeLabels.podUid]: pod.uid, [runtimeLabels.containerName]: name },
      logPath,
    },
  });
  await cri.runtime.startContainer({ containerId });
  const link = join(work, "containers", `${pod.uid}_ns_${name}-${containerId}.log`);
  await symlink(join(pod.config.logDirectory, logPath), link);
  const wanted = stays ? ContainerState.CONTAINER_RUNNING : ContainerState.CONTAINER_EXITED;
  for (;;) {
    const { status } = await cri.runtime.containerStatus({ containerId, verbose: false });
    if (status?.state === wanted) return containerId;
    await systemClock.sleep(10, AbortSignal.timeout(20_000));
  }
}

function containerGc(over: ReadonlySet<string>): ContainerGc {
  return new ContainerGc(
    {
      minimumAgeMs: 0,
      maxPerContainer: 1,
      maxInAll: -1,
      podLogsDir: join(work, "pods"),
      legacyDir: join(work, "containers"),
    },
    {
      runtime: cri.runtime,
      clock: systemClock,
      log: silentLogger,
      recordNodeEvent: ({ message }) => assert.fail(message),
      allSourcesReady: () => true,
      mayRemoveContent: (uid) => over.has(uid),
      mayRemoveRuntime: () => false,
    },
  );
}

async function containerIds(): Promise<readonly string[]> {
  return (await cri.runtime.listContainers({ filter: undefined })).containers.map(({ id }) => id).sort();
}

test("containers: older dead ones go with their logs, then a pod that is gone goes completely", async () => {
  const pod = await runPod("p");
  const dead = [await runContainer(pod, "web", 0), await runContainer(pod, "web", 1)];
  const running = await runContainer(pod, "web", 2, { stays: true });
  const over = new Set<string>();
  const gc = containerGc(over);
  await gc.collect(signal);
  assert.deepEqual(await containerIds(), [dead[1], running].sort());
  assert.deepEqual((await readdir(join(work, "pods", "ns_p_p", "web"))).sort(), ["1.log", "2.log"]);
  assert.equal((await readdir(join(work, "containers"))).length, 2);

  over.add("p");
  await gc.collect(signal);
  assert.deepEqual(await containerIds(), [running], "what runs is never removed");
  await cri.runtime.stopContainer({ containerId: running, timeout: 0n });
  await cri.runtime.stopPodSandbox({ podSandboxId: pod.sandboxId });
  await gc.collect(signal);
  assert.deepEqual(await containerIds(), []);
  assert.deepEqual((await cri.runtime.listPodSandbox({ filter: undefined })).items, []);
  assert.deepEqual(await readdir(join(work, "pods")), []);
  assert.deepEqual(await readdir(join(work, "containers")), []);
});

test("containers: right after one ended, the instance before it goes", async () => {
  const pod = await runPod("q");
  for (const attempt of [0, 1, 2]) await runContainer(pod, "web", attempt);
  const observer = new PodObserver({ runtime: cri.runtime, clock: systemClock });
  const observed = await observer.inspect("q" as PodUid, signal);
  assert.equal(observed.containers.length, 3);
  await containerGc(new Set()).pruneDead(observed, signal);
  assert.deepEqual(await containerIds(), [observed.containers[0]?.id]);
  assert.deepEqual(await readdir(join(work, "pods", "ns_q_q", "web")), ["2.log"]);
  await cri.runtime.stopPodSandbox({ podSandboxId: pod.sandboxId });
  await containerGc(new Set(["q"])).collect(signal);
  assert.deepEqual((await cri.runtime.listPodSandbox({ filter: undefined })).items, []);
});

test("images: what no container uses goes, the sandbox image stays though this runtime does not pin it", async () => {
  for (const name of ["localhost/gc/used:1", "localhost/gc/idle:1"]) {
    await containerd.importImage(await makeImage({ name, files: { "/name": name } }));
  }
  const pod = await runPod("r");
  await runContainer(pod, "web", 0, { image: "localhost/gc/used:1" });
  const { info } = await cri.runtime.status({ verbose: true });
  const sandboxImage = sandboxImageOf(info);
  assert.equal(sandboxImage, containerd.images.pause);

  let removed = 0;
  const gc = new ImageGc(
    { highThresholdPercent: 1, lowThresholdPercent: 0, minimumAgeMs: 0, maximumAgeMs: 0 },
    {
      images: cri.images,
      readFs: (reading) => readImageFs(cri.images, reading),
      imagesInUse: async (listing) => {
        const { containers } = await cri.runtime.listContainers({ filter: undefined }, { signal: listing });
        return new Map(containers.map(({ imageId, imageRef }) => [imageId || imageRef, "a container"]));
      },
      keptImages: () => [sandboxImage],
      ages: new ImageAgeFile(join(work, "images.json")),
      clock: systemClock,
      log: silentLogger,
      recordNodeEvent() {},
      onRemoved: () => removed++,
      onCollected: async () => {},
    },
  );
  await gc.collect(signal);
  const left = (await cri.images.listImages({ filter: undefined })).images.flatMap(({ repoTags }) => repoTags);
  assert.deepEqual(left.sort(), [sandboxImage, "localhost/gc/used:1"].sort());
  assert.equal(removed, 2);
});
