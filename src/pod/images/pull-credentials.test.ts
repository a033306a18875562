import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { type Logger, silentLogger } from "../../ground/base/index.ts";
import type { IdentifiedPod, Secret } from "../../ground/model/index.ts";
import type { CredentialPlugin, ProvidedLogins } from "./credential-plugin.ts";
import { NodeCredentials } from "./node-credentials.ts";
import { credentialHash, PullCredentials, PullSecretError } from "./pull-credentials.ts";
import { readPullSecrets } from "./pull-secrets.ts";

const { signal } = new AbortController();
const pod = { namespace: "ns", name: "p", uid: "u", serviceAccountName: "" };

class Machine implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly warnings: string[] = [];
  readonly root: string;
  readonly node: NodeCredentials;

  private constructor(root: string) {
    this.root = root;
    const log: Logger = {
      ...silentLogger,
      warn: (message, fields) => this.warnings.push(`${message} ${JSON.stringify(fields)}`),
    };
    const paths = { rootDir: join(root, "root"), workDir: join(root, "work"), homeDir: join(root, "home") };
    this.node = new NodeCredentials(paths, { clock: this.clock, log });
  }

  static async create(): Promise<Machine> {
    return new Machine(await mkdtemp(join(tmpdir(), "credentials-")));
  }

  async write(path: string, content: unknown): Promise<void> {
    const file = join(this.root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }

  async users(): Promise<readonly string[]> {
    return (await this.node.read()).map(([, { username }]) => username);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true });
  }
}

const entry = (username: string) => ({ "reg.io": { username, password: "p" } });

test("node files: config.json before .dockercfg, each in root dir, working dir, home, the first one wins", async () => {
  await using machine = await Machine.create();
  const files = [
    ["home/.dockercfg", entry("7")],
    ["work/.dockercfg", entry("6")],
    ["root/.dockercfg", entry("5")],
    ["home/.docker/config.json", { auths: entry("3") }],
    ["work/config.json", { auths: entry("2") }],
    ["root/config.json", { auths: entry("1") }],
  ] as const;
  assert.deepEqual(await machine.users(), []);
  for (const [path, content] of files) {
    await machine.write(path, content);
    await machine.clock.advance(300_000);
    assert.deepEqual(await machine.users(), [Object.values(content).flatMap(nameOf)[0]], path);
  }
  assert.deepEqual(machine.warnings, []);
});

function nameOf(value: object): readonly string[] {
  return "username" in value ? [String(value.username)] : Object.values(value).flatMap(nameOf);
}

test("node files: read again after five minutes, not before", async () => {
  await using machine = await Machine.create();
  await machine.write("root/config.json", { auths: entry("old") });
  assert.deepEqual(await machine.users(), ["old"]);
  await machine.write("root/config.json", { auths: entry("new") });
  await machine.clock.advance(299_999);
  assert.deepEqual(await machine.users(), ["old"]);
  await machine.clock.advance(1);
  assert.deepEqual(await machine.users(), ["new"]);
});

test("node files: one that cannot be read is passed over with a warning that holds no secret", async () => {
  await using machine = await Machine.create();
  await machine.write("root/config.json", '{"auths": {"reg.io": {"password": "hunter2"');
  await machine.write("work/config.json", { auths: entry("next") });
  assert.deepEqual(await machine.users(), ["next"]);
  assert.match(machine.warnings.join(), /root\/config\.json","reason":"not valid JSON"/);
  assert.doesNotMatch(machine.warnings.join(), /hunter2/);
});

function secret(name: string, type: string, key: string, content: unknown): Secret {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  return {
    type,
    metadata: { name, namespace: "ns", uid: `uid-${name}` },
    data: { [key]: Buffer.from(text).toString("base64") },
  };
}

const json = (name: string, auths: object): Secret =>
  secret(name, "kubernetes.io/dockerconfigjson", ".dockerconfigjson", { auths });
const cfg = (name: string, entries: object): Secret => secret(name, "kubernetes.io/dockercfg", ".dockercfg", entries);

function plugin(logins: ProvidedLogins["logins"]): CredentialPlugin {
  return { provide: async () => ({ logins, source: { type: "node" } }) } as unknown as CredentialPlugin;
}

test("order: the pod's secrets, the node's files, the plugins; the same login once", async () => {
  await using machine = await Machine.create();
  await machine.write("root/config.json", { auths: { "reg.io": { username: "node", password: "p" } } });
  const plugins = [
    plugin([["reg.io", { username: "plugin-1", password: "p" }]]),
    plugin([
      ["reg.io/team", { username: "plugin-2", password: "p" }],
      ["reg.io", { username: "node", password: "p" }],
    ]),
  ];
  const credentials = new PullCredentials(machine.node, plugins);
  const secrets = [
    cfg("b", { "reg.io": { username: "secret-b", password: "p" }, "other.io": { username: "x", password: "p" } }),
    json("a", { "reg.io/team": { username: "secret-a", password: "p" } }),
    json("same", { "reg.io": { username: "secret-b", password: "p" } }),
  ];
  const found = await credentials.find("reg.io/team/app", pod, secrets, signal);
  assert.deepEqual(
    found.map(({ username }) => username),
    ["secret-a", "secret-b", "node", "plugin-2", "plugin-1"],
  );
  assert.deepEqual(found[0]?.source, { type: "secret", uid: "uid-a", namespace: "ns", name: "a" });
});

test("secrets: those of another type or without data are passed over", async () => {
  await using machine = await Machine.create();
  const credentials = new PullCredentials(machine.node, []);
  const secrets = [
    secret("opaque", "Opaque", ".dockerconfigjson", { auths: entry("x") }),
    secret("wrong-key", "kubernetes.io/dockerconfigjson", ".dockercfg", entry("x")),
    { type: "kubernetes.io/dockercfg" },
  ];
  assert.deepEqual(await credentials.find("reg.io/app", pod, secrets, signal), []);
});

test("secrets: one that cannot be decoded is named, nothing of it is shown", async () => {
  await using machine = await Machine.create();
  const credentials = new PullCredentials(machine.node, []);
  const broken = secret("s", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", '{"hunter2');
  await assert.rejects(
    credentials.find("reg.io/app", pod, [broken], signal),
    (error) =>
      error instanceof PullSecretError && error.message === 'image pull secret "ns/s" cannot be used: not valid JSON',
  );
});

test("secrets: thousands of logins for one registry are neither read nor tried", async () => {
  await using machine = await Machine.create();
  const secretOf = (count: number): Secret => {
    const auths = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `https://reg.io/v1/?${index}`,
        { username: `${index}`, password: "p" },
      ]),
    );
    const text = Buffer.from(JSON.stringify({ auths })).toString("base64");
    return { type: "kubernetes.io/dockerconfigjson", metadata: { name: "s" }, data: { ".dockerconfigjson": text } };
  };
  const credentials = new PullCredentials(machine.node, []);
  const found = await credentials.find("reg.io/app", pod, [secretOf(1_000)], signal);
  assert.deepEqual([found.length, found[0]?.username], [32, "0"]);
  await assert.rejects(
    credentials.find("reg.io/app", pod, [secretOf(1_001)], signal),
    /has 1001 entries, want at most/,
  );
  assert.equal((await credentials.find("reg.io/app", pod, [secretOf(1), secretOf(3)], signal)).length, 3);
});

test("secrets: however many there are, others have their turn while they are read", async () => {
  await using machine = await Machine.create();
  const text = Buffer.from(JSON.stringify({ auths: { "reg.io": { username: "u", password: "p".repeat(300_000) } } }));
  const data = { ".dockerconfigjson": text.toString("base64") };
  const secret: Secret = { type: "kubernetes.io/dockerconfigjson", metadata: { name: "s" }, data };
  let turns = 0;
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  await new PullCredentials(machine.node, []).find("reg.io/app", pod, Array(50).fill(secret), signal);
  clearImmediate(next);
  assert.ok(turns >= 49, `${turns} turns of the event loop`);
});

test("hash of a login: SHA-256 of its JSON as Go writes it", () => {
  // printf '{"username":"u","password":"p\\u003c\\u0026"}' | sha256sum
  assert.equal(
    credentialHash({ username: "u", password: "p<&" }),
    "3d1578e705d133394a2d58d347f15d583235f9cce1b5114e165b9b98689944f5",
  );
  // printf '{"password":"token"}' | sha256sum
  assert.equal(
    credentialHash({ username: "", password: "token" }),
    "e2b1a0c217e020c13b6c1d8c4613ae16d57bc90d64c571073e52eda6b7198c4f",
  );
});

test("pull secrets: empty names are ignored, missing ones announced, the rest returned", async () => {
  const events: string[] = [];
  const wanting: IdentifiedPod = {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [], imagePullSecrets: [{ name: "a" }, {}, { name: "" }, { name: "gone" }, { name: "lost" }] },
  };
  const secrets = await readPullSecrets(wanting, {
    getSecret: async (namespace, name) => (name === "a" && namespace === "ns" ? json("a", {}) : undefined),
    recordEvent: (_, { type, reason, message }) => events.push(`${type} ${reason} ${message}`),
  });
  assert.deepEqual(
    secrets.map(({ metadata }) => metadata?.name),
    ["a"],
  );
  assert.deepEqual(events, [
    "Warning FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed.",
  ]);
});
