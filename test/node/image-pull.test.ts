import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { request as ask, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildImage } from "../../src/beside/cli/machine/index.ts";
import { CriClient } from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import type { Secret } from "../../src/ground/model/index.ts";
import {
  CredentialPlugin,
  ImageAccess,
  ImageError,
  ImagePuller,
  type ImageRequest,
  loadCredentialProviders,
  NodeCredentials,
  PullCredentials,
  PullRecords,
} from "../../src/pod/images/index.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { makeImage } from "../support/images.ts";
import { registryCredentials, startRegistry, type TestRegistry, tinyImage } from "../support/registry.ts";
import { until } from "../support/until.ts";

// Real containerd, a real registry with and without a password, real plugin programs; only the pods are made up.

let containerd: TestContainerd;
let cri: CriClient;
let open: TestRegistry;
let closed: TestRegistry;
let work: string;

before(async () => {
  [containerd, open, closed] = await Promise.all([
    startContainerd(),
    startRegistry({ auth: "none" }),
    startRegistry({ auth: "basic" }),
  ]);
  cri = new CriClient({ runtimeEndpoint: containerd.endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
  work = await mkdtemp(join(containerd.stateDir, "image-pull-"));
});

after(async () => {
  cri.close();
  await Promise.all([open, closed, containerd].map((part) => part[Symbol.asyncDispose]()));
});

const { signal } = new AbortController();
const { username, password } = registryCredentials;
const login = Buffer.from(`${username}:${password}`).toString("base64");
const clock = systemClock;
const log = silentLogger;

interface Node {
  readonly puller: ImagePuller;
  readonly events: string[];
}

async function startNode(
  options: { serial?: boolean; plugins?: readonly CredentialPlugin[]; access?: ImageAccess } = {},
): Promise<Node> {
  const { serial = true, plugins = [], access } = options;
  const rootDir = await mkdtemp(join(work, "root-"));
  const events: string[] = [];
  const puller = new ImagePuller(
    {
      serializeImagePulls: serial,
      maxParallelImagePulls: undefined,
      imagesPerRuntimeHandler: false,
      registryPullQps: 0,
      registryBurst: 0,
      longestPullMs: undefined,
    },
    {
      images: cri.images,
      content: () => cri.imageContent,
      clock,
      access,
      credentials: new PullCredentials(
        new NodeCredentials({ rootDir, workDir: rootDir, homeDir: undefined }, { clock, log }),
        plugins,
      ),
      recordEvent: (pod, { reason, message }) => events.push(`${pod.metadata.name} ${reason} ${message}`),
      onUse() {},
      onPull() {},
    },
  );
  return { puller, events };
}

function request(uid: string, image: string, more: Partial<ImageRequest> = {}): ImageRequest {
  return {
    pod: { metadata: { name: uid, namespace: "ns", uid }, spec: { containers: [] } },
    image,
    pullPolicy: "IfNotPresent",
    fieldPath: undefined,
    pullSecrets: [],
    sandboxConfig: undefined,
    runtimeHandler: "",
    ...more,
  };
}

function secretFor(host: string, auth: string, name = "pull"): Secret {
  const content = JSON.stringify({ auths: { [host]: { auth } } });
  return {
    type: "kubernetes.io/dockerconfigjson",
    metadata: { name, namespace: "ns", uid: `uid-${name}` },
    data: { ".dockerconfigjson": Buffer.from(content).toString("base64") },
  };
}

async function refusal(wanted: Promise<unknown>): Promise<ImageError> {
  const error: unknown = await wanted.then(
    () => assert.fail("the image was had"),
    (reason) => reason,
  );
  assert.ok(error instanceof ImageError, String(error));
  return error;
}

test("an open registry: the image comes, with its user; the second pod finds it", async () => {
  const node = await startNode();
  const image = await open.push(await makeImage({ name: "user", user: "1234" }), "team/user", "1");
  const first = await node.puller.ensure(request("p1", image), signal);
  assert.match(first.imageRef, /^sha256:[0-9a-f]{64}$/);
  assert.equal(first.image.uid?.value, 1_234n);
  const second = await node.puller.ensure(request("p2", image), signal);
  assert.equal(second.imageRef, first.imageRef);
  assert.equal(node.events[0], `p1 Pulling Pulling image "${image}"`);
  assert.match(
    node.events[1] ?? "",
    /^p1 Pulled Successfully pulled image ".*team\/user:1" in [\d.ms]+ \([\d.ms]+ including waiting\)\. Image size: \d+ bytes\.$/,
  );
  assert.equal(node.events[2], `p2 Pulled Container image "${image}" already present on machine`);
});

test("by digest, and by a name without tag", async () => {
  const node = await startNode();
  const image = tinyImage("digest");
  const tagged = await open.push(image, "team/digest", "latest");
  const repository = tagged.slice(0, tagged.lastIndexOf(":"));
  const byDigest = await node.puller.ensure(request("p1", `${repository}@${image.manifest.digest}`), signal);
  const byName = await node.puller.ensure(request("p2", repository, { pullPolicy: "Always" }), signal);
  assert.equal(byDigest.imageRef, byName.imageRef);
});

test("an image that does not exist, a registry that is not there", async () => {
  const node = await startNode();
  const absent = await refusal(node.puller.ensure(request("p1", `${open.host}/team/absent:1`), signal));
  assert.equal(absent.reason, "ErrImagePull");
  assert.match(absent.message, /^rpc error: code = NotFound desc = failed to pull and unpack image .*not found$/s);
  const again = await refusal(node.puller.ensure(request("p1", `${open.host}/team/absent:1`), signal));
  assert.equal(again.reason, "ImagePullBackOff");
  assert.ok((again.nextTryAt ?? 0) > clock.now());
  const nobody = await refusal(node.puller.ensure(request("p2", "127.0.0.1:1/app:1"), signal));
  assert.match(nobody.message, /^failed to pull and unpack image .*connection refused$/s);
});

test("a password: refused without, with a wrong one; had with the pod's secret, whatever wrong one comes first", async () => {
  const node = await startNode();
  const image = await closed.push(tinyImage("secret"), "team/secret", "1");
  const anonymous = await refusal(node.puller.ensure(request("p1", image), signal));
  assert.equal(anonymous.reason, "ErrImagePull");
  assert.match(anonymous.message, /401|authorization failed|no basic auth/);
  const wrong = secretFor(closed.host, Buffer.from("puller:wrong").toString("base64"), "wrong");
  const refused = await refusal(node.puller.ensure(request("p2", image, { pullSecrets: [wrong] }), signal));
  assert.match(refused.message, /401|authorization failed/);
  assert.doesNotMatch(node.events.join(), /wrong|open-sesame/);
  const pullSecrets = [wrong, secretFor(closed.host, login, "right")];
  await node.puller.ensure(request("p3", image, { pullSecrets }), signal);
});

test("a password in the node's file, in the newer and the older form", async () => {
  for (const [file, content] of [
    ["config.json", { auths: { [closed.host]: { auth: login } } }],
    [".dockercfg", { [`http://${closed.host}/v1/`]: { username, password } }],
  ] as const) {
    const rootDir = await mkdtemp(join(work, "root-"));
    await writeFile(join(rootDir, file), JSON.stringify(content));
    const credentials = new PullCredentials(
      new NodeCredentials({ rootDir, workDir: rootDir, homeDir: undefined }, { clock, log }),
      [],
    );
    const image = await closed.push(tinyImage(file), `team/node${file.replace(".json", "").replace(".", "-")}`, "1");
    const found = await credentials.find(image.slice(0, image.lastIndexOf(":")), pluginPod, [], signal);
    const auth = { username: "", password: "", auth: "", serverAddress: "", identityToken: "", registryToken: "" };
    const spec = { image, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
    assert.equal(found.length, 1);
    const pulled = await cri.images.pullImage({
      image: spec,
      auth: { ...auth, ...found[0] },
      sandboxConfig: undefined,
    });
    assert.match(pulled.imageRef, /^sha256:/);
  }
});

const pluginPod = { namespace: "ns", name: "p", uid: "p", serviceAccountName: "" };

test("a password from a credential provider plugin", async () => {
  const binDir = join(work, "bin");
  await mkdir(binDir);
  const program = join(binDir, "login-helper");
  await writeFile(
    program,
    `#!/bin/sh
cat >/dev/null
echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"'$1'":{"username":"${username}","password":"'$PASSWORD'"}}}'
`,
  );
  await chmod(program, 0o755);
  const configPath = join(work, "credential-providers.yaml");
  await writeFile(
    configPath,
    `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: login-helper
    matchImages: ["127.0.0.*:${closed.host.split(":")[1]}"]
    defaultCacheDuration: 10m
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    args: ["${closed.host}"]
    env: [{name: PASSWORD, value: "${password}"}]
`,
  );
  const { providers } = await loadCredentialProviders({ configPath, binDir, allowTokens: true });
  const ports = { clock, log, environment: { PATH: "/usr/bin:/bin" }, serviceAccounts: undefined, onCall() {} };
  const plugins = providers.map((provider) => new CredentialPlugin(provider, binDir, ports));
  const node = await startNode({ plugins });
  const image = await closed.push(tinyImage("plugin"), "team/plugin", "1");
  await node.puller.ensure(request("p1", image), signal);
});

test("twenty pods that want the same image at once are one pull", async () => {
  const node = await startNode({ serial: false });
  const image = await open.push(tinyImage("shared"), "team/shared", "1");
  const uids = Array.from({ length: 20 }, (_, index) => `p${index}`);
  const had = await Promise.all(
    uids.map((uid) => {
      const pod = new AbortController();
      return node.puller.ensure(request(uid, image, { pullPolicy: "Always" }), pod.signal);
    }),
  );
  assert.equal(new Set(had.map(({ imageRef }) => imageRef)).size, 1);
  const lookups = (await open.log()).match(/"HEAD \/v2\/team\/shared\/manifests\/1 /g) ?? [];
  assert.equal(lookups.length, 1);
});

test("a registry that never answers: a present image is used meanwhile, and the turn goes on when its pod goes", async () => {
  const node = await startNode({ serial: true });
  await using silent = await startSilentRegistry();
  const present = await open.push(tinyImage("present"), "team/present", "1");
  const other = await open.push(tinyImage("other"), "team/other", "1");
  await node.puller.ensure(request("p0", present), signal);
  const pod = new AbortController();
  const stuck = assert.rejects(node.puller.ensure(request("p1", `${silent.host}/app:1`), pod.signal), /pod deleted/);
  await silent.asked;
  await node.puller.ensure(request("p2", present), signal);
  let isQueued: () => void = () => {};
  const queued = new Promise<void>((resolve) => {
    isQueued = resolve;
  });
  const onPhase: ImageRequest["onPhase"] = ({ type }) => type === "queued" && isQueued();
  const waiting = node.puller.ensure(request("p3", other, { onPhase }), signal);
  await queued;
  await node.puller.ensure(request("p4", present), signal);
  const [first, second] = node.puller.list();
  assert.deepEqual(first?.podUids, ["p1"]);
  assert.ok((first?.ageMs ?? 0) > 0);
  assert.deepEqual([second?.podUids, second?.ageMs], [["p3"], undefined]);
  pod.abort(new Error("pod deleted"));
  await Promise.all([stuck, waiting]);
});

test("how far a pull is: bytes of the layers, until it is done", async () => {
  const node = await startNode();
  const content = randomBytes(3_000_000);
  const image = buildImage({ name: "slow", labels: {}, entries: [{ type: "file", path: "data", content }] });
  await open.push(image, "team/slow", "1");
  const { length } = image.layer.content;
  const halting = await startHaltingProxy(open.host, image.layer.digest, Math.floor(length / 2));
  try {
    const pulled = node.puller.ensure(request("p1", `${halting.host}/team/slow:1`), signal);
    const progress = async () => (await node.puller.pulls(signal)).map((pull) => pull.progress)[0];
    await until("something of it is known to be here", async () => ((await progress())?.bytes ?? 0) > 0);
    const half = await progress();
    assert.equal(half?.totalBytes, length);
    assert.ok(half.bytes > 0 && half.bytes <= length / 2, `${half.bytes} of ${length}`);
    assert.deepEqual(half.layers, { done: 0, total: 1 });
    halting.goOn();
    await pulled;
    await until("nothing is pulled any more", async () => (await node.puller.pulls(signal)).length === 0);
  } finally {
    halting.close();
  }
});

/** Passes requests on to a registry; of one blob it gives so many bytes, and the rest once it is told to go on. */
async function startHaltingProxy(registry: string, digest: string, bytes: number) {
  let goOn = (): void => {};
  const told = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const server = createServer((incoming, outgoing) => {
    const options = { host: "127.0.0.1", port: registry.split(":")[1], path: incoming.url, method: incoming.method };
    ask({ ...options, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      void (async () => {
        let sent = 0;
        for await (const chunk of answer as AsyncIterable<Buffer>) {
          if (incoming.url?.endsWith(digest) && sent + chunk.length > bytes) await told;
          sent += chunk.length;
          outgoing.write(chunk);
        }
        outgoing.end();
      })();
    }).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    goOn();
    server.closeAllConnections();
    server.close();
  };
  return { host: `127.0.0.1:${port}`, goOn, close };
}

test("pull records: a second pod must show the secret, across a restart of the agent", async () => {
  const directory = join(work, "image_manager");
  const openRecords = async () => {
    const access = new ImageAccess(
      { type: "NeverVerifyPreloadedImages" },
      { records: new PullRecords(directory), clock, log },
    );
    const { images } = await cri.images.listImages({ filter: undefined });
    await access.recover(images.map(({ id, repoTags, repoDigests }) => ({ id, names: [...repoTags, ...repoDigests] })));
    return access;
  };
  const image = await closed.push(tinyImage("recorded"), "team/recorded", "1");
  const pullSecrets = [secretFor(closed.host, login)];
  const node = await startNode({ access: await openRecords() });
  await node.puller.ensure(request("p1", image, { pullSecrets }), signal);
  assert.equal((await readdir(join(directory, "pulled"))).length, 1);
  assert.deepEqual(await readdir(join(directory, "pulling")), []);
  const restarted = await startNode({ access: await openRecords() });
  const refused = await refusal(restarted.puller.ensure(request("p2", image), signal));
  assert.match(refused.message, /401|authorization failed|no basic auth/);
  const never = await refusal(restarted.puller.ensure(request("p3", image, { pullPolicy: "Never" }), signal));
  assert.equal(never.reason, "ErrImageNeverPull");
  await restarted.puller.ensure(request("p4", image, { pullSecrets }), signal);
  assert.equal(
    restarted.events.at(-1),
    `p4 Pulled Container image "${image}" already present on machine and can be accessed by the pod`,
  );
  await rm(directory, { recursive: true });
});

/** Accepts requests and never answers them. */
async function startSilentRegistry(): Promise<
  AsyncDisposable & { readonly host: string; readonly asked: Promise<unknown> }
> {
  const server = createServer(() => {});
  const asked = once(server, "request");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return {
    host: `127.0.0.1:${address.port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
