import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { ImageAccess, type VerificationPolicy } from "./image-access.ts";
import type { Credential } from "./keyring.ts";
import { credentialHash } from "./pull-credentials.ts";
import { PullRecords } from "./pull-records.ts";

const image = "reg.io/app:1";
const ref = "sha256:app";

class Store implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(): Promise<Store> {
    return new Store(await mkdtemp(join(tmpdir(), "image-access-")));
  }

  async open(
    policy: VerificationPolicy = { type: "NeverVerifyPreloadedImages" },
    images: Parameters<ImageAccess["recover"]>[0] = [],
  ): Promise<ImageAccess> {
    const records = new PullRecords(join(this.directory, "image_manager"));
    const access = new ImageAccess(policy, { records, clock: this.clock, log: silentLogger });
    await access.recover(images);
    return access;
  }

  path(kind: "pulling" | "pulled", key: string): string {
    return join(this.directory, "image_manager", kind, `sha256-${createHash("sha256").update(key).digest("hex")}`);
  }

  async read(kind: "pulling" | "pulled", key: string): Promise<unknown> {
    return JSON.parse(await readFile(this.path(kind, key), "utf8"));
  }

  async count(kind: "pulling" | "pulled"): Promise<number> {
    return (await readdir(join(this.directory, "image_manager", kind))).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }
}

const credentials = {
  node: { username: "n", password: "n", source: { type: "node" } },
  secret: secretOf("s", "hidden"),
  renamed: secretOf("other", "hidden"),
  rotated: secretOf("s", "changed"),
  foreign: secretOf("foreign", "foreign"),
  account: accountOf("builder"),
  otherAccount: accountOf("other"),
} satisfies Record<string, Credential>;

function secretOf(name: string, password: string): Credential {
  return { username: "u", password, source: { type: "secret", uid: `uid-${name}`, namespace: "ns", name } };
}

function accountOf(name: string): Credential {
  return {
    username: "u",
    password: "t",
    source: { type: "serviceAccount", uid: `uid-${name}`, namespace: "ns", name },
  };
}

async function pull(access: ImageAccess, credential: Credential | undefined, name = image): Promise<void> {
  await access.pullStarts(name);
  await access.pullSucceeded(name, ref, credential);
}

const noCredentials = async (): Promise<readonly Credential[]> => [];

test("a pull leaves an intent while it runs and a record when it is done, in the kubelet's format", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await access.pullStarts(image);
  assert.deepEqual(await store.read("pulling", image), {
    kind: "ImagePullIntent",
    apiVersion: "kubelet.config.k8s.io/v1alpha1",
    image,
  });
  await access.pullSucceeded(image, ref, credentials.secret);
  assert.equal(await store.count("pulling"), 0);
  assert.deepEqual(await store.read("pulled", ref), {
    kind: "ImagePulledRecord",
    apiVersion: "kubelet.config.k8s.io/v1alpha1",
    lastUpdatedTime: "2026-01-01T00:00:00Z",
    imageRef: ref,
    credentialMapping: {
      "reg.io/app": {
        kubernetesSecrets: [
          { uid: "uid-s", namespace: "ns", name: "s", credentialHash: credentialHash(credentials.secret) },
        ],
      },
    },
  });
  assert.equal((await stat(store.path("pulled", ref))).mode & 0o777, 0o600);
  assert.equal((await stat(join(store.directory, "image_manager", "pulled"))).mode & 0o777, 0o700);
});

test("a failed pull leaves nothing; with two under way the intent stays until both have ended", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await access.pullStarts(image);
  await access.pullStarts(image);
  await access.pullFailed(image);
  assert.equal(await store.count("pulling"), 1);
  await access.pullFailed(image);
  assert.equal(await store.count("pulling"), 0);
  assert.equal(await store.count("pulled"), 0);
});

for (const { about, pulledWith, shown, allowed } of [
  { about: "pulled anonymously: everybody may", pulledWith: undefined, shown: [], allowed: true },
  { about: "pulled with the node's login: everybody may", pulledWith: "node", shown: [], allowed: true },
  { about: "pulled with a secret, none shown", pulledWith: "secret", shown: [], allowed: false },
  { about: "pulled with a secret, another shown", pulledWith: "secret", shown: ["foreign"], allowed: false },
  { about: "pulled with a secret, the same shown", pulledWith: "secret", shown: ["foreign", "secret"], allowed: true },
  {
    about: "pulled with a secret, its content under another name",
    pulledWith: "secret",
    shown: ["renamed"],
    allowed: true,
  },
  {
    about: "pulled with a secret, its name with other content",
    pulledWith: "secret",
    shown: ["rotated"],
    allowed: true,
  },
  { about: "pulled with a secret, the node's login shown", pulledWith: "secret", shown: ["node"], allowed: false },
  { about: "pulled by an account, the same", pulledWith: "account", shown: ["account"], allowed: true },
  { about: "pulled by an account, another", pulledWith: "account", shown: ["otherAccount"], allowed: false },
] as const) {
  test(`access: ${about}`, async () => {
    await using store = await Store.create();
    const access = await store.open();
    await pull(access, pulledWith === undefined ? undefined : credentials[pulledWith]);
    const found = shown.map((name) => credentials[name]);
    assert.equal(await access.mayUse(image, ref, async () => found), allowed);
    const restarted = await store.open();
    assert.equal(await restarted.mayUse(image, ref, async () => found), allowed, "after a restart");
  });
}

test("a match by content or by name is written down, so that either alone suffices later", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await pull(access, credentials.secret);
  await access.mayUse(image, ref, async () => [credentials.renamed]);
  const rotatedOther = { ...credentials.renamed, password: "new" };
  assert.equal(await access.mayUse(image, ref, async () => [rotatedOther]), true);
});

test("access is by repository: the same image under another name must be shown anew", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await pull(access, undefined);
  assert.equal(await access.mayUse("other.io/app:1", ref, noCredentials), false);
  await pull(access, credentials.secret, "other.io/app:1");
  assert.equal(await access.mayUse("other.io/app:1", ref, async () => [credentials.secret]), true);
  assert.equal(await access.mayUse(image, ref, noCredentials), true);
});

test("once everybody may use it, that stays so", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await pull(access, credentials.secret);
  await pull(access, undefined);
  await pull(access, credentials.foreign);
  assert.equal(await access.mayUse(image, ref, noCredentials), true);
});

for (const { policy, preloaded, pulled } of [
  { policy: { type: "NeverVerify" }, preloaded: true, pulled: true },
  { policy: { type: "NeverVerifyPreloadedImages" }, preloaded: true, pulled: false },
  { policy: { type: "AlwaysVerify" }, preloaded: false, pulled: false },
  { policy: { type: "NeverVerifyAllowlistedImages", allowlist: ["reg.io/app"] }, preloaded: true, pulled: true },
  { policy: { type: "NeverVerifyAllowlistedImages", allowlist: ["reg.io/*"] }, preloaded: true, pulled: true },
  {
    policy: { type: "NeverVerifyAllowlistedImages", allowlist: ["reg.io/ap", "re/*"] },
    preloaded: false,
    pulled: false,
  },
] as const) {
  test(`policy ${JSON.stringify(policy)}`, async () => {
    await using store = await Store.create();
    const access = await store.open(policy);
    assert.equal(await access.mayUse(image, ref, noCredentials), preloaded, "preloaded");
    await pull(access, credentials.secret);
    assert.equal(await access.mayUse(image, ref, noCredentials), pulled, "pulled with a secret");
  });
}

test("credentials are looked up only when they matter", async () => {
  await using store = await Store.create();
  const access = await store.open();
  const find = async (): Promise<never> => assert.fail("asked for credentials");
  assert.equal(await access.mayUse(image, ref, find), true);
  await access.pullStarts(image);
  assert.equal(await access.mayUse(image, ref, find), false, "being pulled by another pod");
  await access.pullSucceeded(image, ref, undefined);
  assert.equal(await access.mayUse(image, ref, find), true);
});

test("a pull that a crash cut off: what it brought must be shown credentials for, what it did not stays an intent", async () => {
  await using store = await Store.create();
  const before = await store.open();
  await before.pullStarts("nginx:latest");
  await before.pullStarts("reg.io/absent:1");
  const images = [{ id: ref, names: ["docker.io/library/nginx:latest"] }];
  const after = await store.open(undefined, images);
  assert.equal(await store.count("pulling"), 1);
  assert.deepEqual(await store.read("pulled", ref), {
    kind: "ImagePulledRecord",
    apiVersion: "kubelet.config.k8s.io/v1alpha1",
    lastUpdatedTime: "2026-01-01T00:00:00Z",
    imageRef: ref,
  });
  assert.equal(await after.mayUse("nginx:latest", ref, async () => [credentials.secret]), false);
});

test("records of images that are gone are dropped, unless written since", async () => {
  await using store = await Store.create();
  const access = await store.open();
  for (const id of ["kept", "gone"]) {
    await access.pullStarts(image);
    await access.pullSucceeded(image, id, undefined);
  }
  await store.clock.advance(60_000);
  const before = store.clock.now();
  await access.pullStarts(image);
  await access.pullSucceeded(image, "new", undefined);
  await access.prune(new Set(["kept"]), before);
  assert.equal(await store.count("pulled"), 2);
  assert.equal(((await store.read("pulled", "new")) as { imageRef: string }).imageRef, "new");
});

for (const type of ["AlwaysVerify", "NeverVerifyPreloadedImages"] as const) {
  test(`a record that cannot be understood asks for credentials again instead of failing (${type})`, async () => {
    await using store = await Store.create();
    const access = await store.open({ type });
    await pull(access, credentials.secret);
    for (const content of [
      "",
      "{",
      "[]",
      '{"kind":"ImagePulledRecord","imageRef":"x","credentialMapping":{"reg.io/app":7}}',
    ]) {
      await writeFile(store.path("pulled", ref), content);
      assert.equal(await access.mayUse(image, ref, async () => [credentials.secret]), false, content);
    }
    await pull(access, credentials.secret);
    assert.equal(await access.mayUse(image, ref, async () => [credentials.secret]), true);
  });
}

test("while it can't be told who pulled an image, nobody has it without credentials", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await pull(access, credentials.secret);
  const without = (): Promise<boolean> => access.mayUse(image, ref, async () => []);
  assert.equal(await without(), false);
  {
    using _ = withoutDescriptors();
    assert.equal(await without(), false);
  }
  await rm(store.path("pulled", ref));
  assert.equal(await without(), true, "preloaded");
  await rm(join(store.directory, "image_manager", "pulling"), { recursive: true });
  await symlink("pulling", join(store.directory, "image_manager", "pulling"));
  assert.equal(await without(), false, "whether it is being pulled is not known");
});

test("a record that can't be read for now is not replaced by one that knows less", async () => {
  await using store = await Store.create();
  const access = await store.open();
  await pull(access, credentials.secret);
  const before = await store.read("pulled", ref);
  {
    await access.pullStarts(image);
    using _ = withoutDescriptors();
    await access.pullSucceeded(image, ref, credentials.foreign);
  }
  assert.deepEqual(await store.read("pulled", ref), before);
});

test("pulls of one image that begin and end side by side keep its intent until the last has ended", async () => {
  await using store = await Store.create();
  const access = await store.open();
  const pulls = Array.from({ length: 20 }, () => access.pullStarts(image));
  await Promise.all(pulls);
  for (let ended = 1; ended < pulls.length; ended++) {
    await Promise.all([access.pullFailed(image), access.pullStarts(image), access.pullFailed(image)]);
    assert.equal(await store.count("pulling"), 1);
  }
  await access.pullFailed(image);
  assert.equal(await store.count("pulling"), 0);
});
