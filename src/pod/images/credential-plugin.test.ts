import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { type Logger, silentLogger } from "../../ground/base/index.ts";
import { CredentialPlugin, type PullingPod, type ServiceAccounts } from "./credential-plugin.ts";
import type { CredentialProviderSettings, TokenSettings } from "./plugin-config.ts";
import { parseRegistryPattern } from "./registry-pattern.ts";

const apiVersion = "credentialprovider.kubelet.k8s.io/v1";
const { signal } = new AbortController();
const pod: PullingPod = { namespace: "shop", name: "web", uid: "uid-1", serviceAccountName: "builder" };
const tokenSettings: TokenSettings = {
  audience: "registry",
  cacheBy: "ServiceAccount",
  requireServiceAccount: true,
  requiredAnnotations: [],
  optionalAnnotations: [],
};

/** A real program: appends each request to calls.log and then does what `answer` says (JavaScript). */
class Plugin implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly complaints: string[] = [];
  readonly calls: { readonly failed: boolean }[] = [];
  readonly directory: string;
  readonly #plugin: CredentialPlugin;

  private constructor(directory: string, settings: Partial<CredentialProviderSettings>, accounts?: ServiceAccounts) {
    this.directory = directory;
    const log: Logger = {
      ...silentLogger,
      error: (message, error) => this.complaints.push(`${message}: ${String(error)}`),
    };
    this.#plugin = new CredentialPlugin(
      {
        name: "plugin",
        matchImages: ["*.example.com", "other.io"].flatMap((text) => parseRegistryPattern(text) ?? []),
        defaultCacheMs: 60_000,
        apiVersion,
        args: [],
        env: [],
        token: undefined,
        ...settings,
      },
      directory,
      {
        clock: this.clock,
        log,
        environment: {
          PATH: "/usr/local/bin:/usr/bin:/bin",
          OWN: "agent",
          BOTH: "agent",
          CALLS: join(directory, "calls"),
        },
        serviceAccounts: accounts,
        onCall: (call) => this.calls.push(call),
      },
    );
  }

  static async create(
    answer: string,
    settings: Partial<CredentialProviderSettings> = {},
    accounts?: ServiceAccounts,
  ): Promise<Plugin> {
    const directory = await mkdtemp(join(tmpdir(), "credential-plugin-"));
    const program = join(directory, "plugin");
    await writeFile(
      program,
      `#!/usr/bin/env node
const fs = require("node:fs");
const text = fs.readFileSync(0, "utf8");
const request = JSON.parse(text);
fs.appendFileSync(process.env.CALLS, text + "\\n");
const respond = (fields) => console.log(JSON.stringify({
  kind: "CredentialProviderResponse", apiVersion: request.apiVersion, cacheKeyType: "Image",
  auth: { "*.example.com": { username: "u", password: "p" } }, ...fields }));
${answer}
`,
    );
    await chmod(program, 0o755);
    return new Plugin(directory, settings, accounts);
  }

  ask(repository = "reg.example.com/team/app", asking: PullingPod = pod, abort: AbortSignal = signal) {
    return this.#plugin.provide(repository, asking, abort);
  }

  async logins(repository?: string, asking?: PullingPod): Promise<readonly string[]> {
    const { logins } = await this.ask(repository, asking);
    return logins.map(([location, { username, password }]) => `${location} ${username}:${password}`);
  }

  async requests(): Promise<readonly unknown[]> {
    const text = await readFile(join(this.directory, "calls"), "utf8").catch(() => "");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line): unknown => JSON.parse(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }
}

class Accounts implements ServiceAccounts {
  readonly tokens: string[] = [];
  annotations: Record<string, string> = {};
  #next = 0;

  async get(): Promise<{ uid: string; annotations: Record<string, string> }> {
    return { uid: "sa-uid", annotations: this.annotations };
  }

  async requestToken(asking: PullingPod, audience: string): Promise<string> {
    const token = `token-${this.#next++}`;
    this.tokens.push(`${asking.namespace}/${asking.serviceAccountName} ${audience} ${asking.name} ${asking.uid}`);
    return token;
  }
}

test("the request is what the protocol says, the answer's logins come back", async () => {
  await using plugin = await Plugin.create("respond({})");
  assert.deepEqual(await plugin.logins(), ["*.example.com u:p"]);
  assert.deepEqual(await plugin.requests(), [
    { kind: "CredentialProviderRequest", apiVersion, image: "reg.example.com/team/app" },
  ]);
  assert.deepEqual(
    plugin.calls.map(({ failed }) => failed),
    [false],
  );
});

test("an image that no pattern fits does not run the program", async () => {
  await using plugin = await Plugin.create("respond({})");
  assert.deepEqual(await plugin.logins("docker.io/library/nginx"), []);
  assert.deepEqual(await plugin.requests(), []);
});

test("arguments are passed as they are, without a shell; configured variables win over the agent's", async () => {
  await using plugin = await Plugin.create(
    `const { OWN, BOTH } = process.env;
     respond({ auth: { "x.example.com": { username: process.argv.slice(2).join("|"), password: OWN + BOTH } } })`,
    { args: ["$(id)", "a b", ";"], env: [{ name: "BOTH", value: "plugin" }] },
  );
  assert.deepEqual(await plugin.logins(), ["x.example.com $(id)|a b|;:agentplugin"]);
});

for (const { keyType, sameImage, sameRegistry, otherRegistry } of [
  { keyType: "Image", sameImage: 1, sameRegistry: 2, otherRegistry: 3 },
  { keyType: "Registry", sameImage: 1, sameRegistry: 1, otherRegistry: 2 },
  { keyType: "Global", sameImage: 1, sameRegistry: 1, otherRegistry: 1 },
]) {
  test(`answers are cached by ${keyType}`, async () => {
    await using plugin = await Plugin.create(`respond({ cacheKeyType: "${keyType}" })`);
    await plugin.ask("reg.example.com/team/app");
    await plugin.ask("reg.example.com/team/app");
    assert.equal((await plugin.requests()).length, sameImage);
    await plugin.ask("reg.example.com/team/other");
    assert.equal((await plugin.requests()).length, sameRegistry);
    await plugin.ask("other.io/team/app");
    assert.equal((await plugin.requests()).length, otherRegistry);
  });
}

for (const { about, response, validMs } of [
  { about: "the configured duration when the answer has none", response: "{}", validMs: 60_000 },
  { about: "the answer's duration", response: '{ cacheDuration: "5m" }', validMs: 300_000 },
  { about: "not at all when the answer says 0s", response: '{ cacheDuration: "0s" }', validMs: 0 },
]) {
  test(`answers are cached: ${about}`, async () => {
    await using plugin = await Plugin.create(`respond(${response})`);
    await plugin.ask();
    await plugin.clock.advance(Math.max(validMs - 1, 0));
    await plugin.ask();
    assert.equal((await plugin.requests()).length, validMs > 0 ? 1 : 2);
    await plugin.clock.advance(1);
    await plugin.ask();
    assert.equal((await plugin.requests()).length, validMs > 0 ? 2 : 3);
  });
}

test("an empty answer is cached too", async () => {
  await using plugin = await Plugin.create("respond({ auth: undefined })");
  assert.deepEqual(await plugin.logins(), []);
  assert.deepEqual(await plugin.logins(), []);
  assert.equal((await plugin.requests()).length, 1);
});

test("pods that ask for the same image at once share one run", async () => {
  await using plugin = await Plugin.create('respond({ cacheDuration: "0s" })');
  const answers = await Promise.all(Array.from({ length: 5 }, () => plugin.logins()));
  assert.deepEqual(new Set(answers.flat()), new Set(["*.example.com u:p"]));
  assert.equal((await plugin.requests()).length, 1);
});

for (const { about, answer, complaint } of [
  {
    about: "exit code and stderr",
    answer: 'console.error("no network"); process.exit(3)',
    complaint: /exited with 3: no network/,
  },
  { about: "no JSON", answer: 'console.log("{hunter2")', complaint: /the answer is not valid JSON/ },
  {
    about: "another version",
    answer: 'respond({ apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1" })',
    complaint: /apiVersion is not/,
  },
  {
    about: "another kind",
    answer: 'respond({ kind: "hunter2" })',
    complaint: /kind is not CredentialProviderResponse/,
  },
  { about: "an unknown field", answer: 'respond({ extra: "hunter2" })', complaint: /extra: unknown field/ },
  {
    about: "an unknown field of a login",
    answer: 'respond({ auth: { "x.io": { passwd: "hunter2" } } })',
    complaint: /passwd: unknown field/,
  },
  {
    about: "a login of the wrong type",
    answer: 'respond({ auth: { "x.io": "hunter2" } })',
    complaint: /auth\.x\.io: found a string/,
  },
  {
    about: "an invalid cache key type",
    answer: 'respond({ cacheKeyType: "hunter2" })',
    complaint: /cacheKeyType is none of/,
  },
  {
    about: "an invalid duration",
    answer: 'respond({ cacheDuration: "hunter2" })',
    complaint: /cacheDuration is no duration/,
  },
]) {
  test(`no credentials, no secret in the log: ${about}`, async () => {
    await using plugin = await Plugin.create(answer);
    assert.deepEqual(await plugin.logins(), []);
    assert.match(plugin.complaints.join(), complaint);
    assert.doesNotMatch(plugin.complaints.join(), /hunter2/);
    assert.deepEqual(
      plugin.calls.map(({ failed }) => failed),
      [true],
    );
    await plugin.ask();
    assert.equal((await plugin.requests()).length, 2, "a failure is not cached");
  });
}

test("a program that is gone gives no credentials", async () => {
  await using plugin = await Plugin.create("respond({})", { name: "absent" });
  assert.deepEqual(await plugin.logins(), []);
  assert.match(plugin.complaints.join(), /cannot be started: .*ENOENT/);
});

test("a program that does not answer within a minute is ended", async () => {
  await using plugin = await Plugin.create("setInterval(() => {}, 1000)");
  const asked = plugin.logins();
  while ((await plugin.requests()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await plugin.clock.advance(60_000);
  assert.deepEqual(await asked, []);
  assert.match(plugin.complaints.join(), /did not answer within 60 s/);
});

test("a pod that goes away ends the program it asked", async () => {
  await using plugin = await Plugin.create("setInterval(() => {}, 1000)");
  const leaver = new AbortController();
  const asked = plugin.ask(undefined, pod, leaver.signal);
  const rejected = assert.rejects(asked, /pod deleted/);
  leaver.abort(new Error("pod deleted"));
  await rejected;
  assert.equal(plugin.clock.pendingTimers, 0);
  assert.deepEqual(plugin.complaints, []);
});

test("a program may answer without reading its input", async () => {
  const shell = `#!/bin/sh
echo '{"kind":"CredentialProviderResponse","apiVersion":"${apiVersion}","cacheKeyType":"Image","auth":{"a.io":{"username":"u","password":"p"}}}'
`;
  await using deaf = await Plugin.create("", { name: "deaf" });
  await writeFile(join(deaf.directory, "deaf"), shell, { mode: 0o755 });
  assert.deepEqual(await deaf.logins(), ["a.io u:p"]);
});

test("token mode: token and chosen annotations are sent, the credentials belong to the account", async () => {
  const accounts = new Accounts();
  accounts.annotations = { "a.io/role": "reader", "a.io/extra": "x", "a.io/private": "y" };
  const token = {
    ...tokenSettings,
    requiredAnnotations: ["a.io/role"],
    optionalAnnotations: ["a.io/extra", "a.io/none"],
  };
  await using plugin = await Plugin.create("respond({})", { token }, accounts);
  const { source } = await plugin.ask();
  assert.deepEqual(source, { type: "serviceAccount", uid: "sa-uid", namespace: "shop", name: "builder" });
  assert.deepEqual(await plugin.requests(), [
    {
      kind: "CredentialProviderRequest",
      apiVersion,
      image: "reg.example.com/team/app",
      serviceAccountToken: "token-0",
      serviceAccountAnnotations: { "a.io/role": "reader", "a.io/extra": "x" },
    },
  ]);
  assert.deepEqual(accounts.tokens, ["shop/builder registry web uid-1"]);
});

for (const { about, annotations, serviceAccountName, required, requests } of [
  {
    about: "a required annotation is missing",
    annotations: {},
    serviceAccountName: "builder",
    required: true,
    requests: 0,
  },
  { about: "no account, and one is required", annotations: {}, serviceAccountName: "", required: true, requests: 0 },
  { about: "no account, and none is required", annotations: {}, serviceAccountName: "", required: false, requests: 1 },
]) {
  test(`token mode: ${about}`, async () => {
    const accounts = new Accounts();
    accounts.annotations = annotations;
    const token = {
      ...tokenSettings,
      requireServiceAccount: required,
      requiredAnnotations: required ? ["a.io/role"] : [],
    };
    await using plugin = await Plugin.create("respond({})", { token }, accounts);
    const logins = await plugin.logins(undefined, { ...pod, serviceAccountName });
    assert.equal(logins.length, requests);
    const sent = await plugin.requests();
    assert.equal(sent.length, requests);
    if (requests > 0) assert.deepEqual(Object.keys(sent[0] as object), ["kind", "apiVersion", "image"]);
    assert.deepEqual(plugin.complaints, []);
  });
}

for (const { cacheBy, runs } of [
  { cacheBy: "ServiceAccount", runs: 1 },
  { cacheBy: "Token", runs: 2 },
] as const) {
  test(`token mode: cached by ${cacheBy}, apart for each account and annotation`, async () => {
    const accounts = new Accounts();
    const token = { ...tokenSettings, cacheBy, optionalAnnotations: ["role"] };
    await using plugin = await Plugin.create('respond({ cacheKeyType: "Global" })', { token }, accounts);
    await plugin.ask();
    await plugin.ask(undefined, { ...pod, name: "second", uid: "uid-2" });
    assert.equal((await plugin.requests()).length, runs);
    await plugin.ask(undefined, { ...pod, serviceAccountName: "other" });
    assert.equal((await plugin.requests()).length, runs + 1);
    accounts.annotations = { role: "admin" };
    await plugin.ask();
    assert.equal((await plugin.requests()).length, runs + 2);
  });
}

test("token mode: handing the token back as password is refused unless cached by token", async () => {
  const echo = 'respond({ auth: { "a.example.com": { username: "u", password: request.serviceAccountToken } } })';
  await using refused = await Plugin.create(echo, { token: tokenSettings }, new Accounts());
  assert.deepEqual(await refused.logins(), []);
  assert.match(refused.complaints.join(), /returns the pod's token as password/);
  await using allowed = await Plugin.create(echo, { token: { ...tokenSettings, cacheBy: "Token" } }, new Accounts());
  assert.deepEqual(await allowed.logins(), ["a.example.com u:token-0"]);
});

test("token mode: a token that the program prints when it fails is not logged", async () => {
  const leak = 'console.error("refused: " + request.serviceAccountToken); process.exit(1)';
  await using plugin = await Plugin.create(leak, { token: tokenSettings }, new Accounts());
  assert.deepEqual(await plugin.logins(), []);
  assert.match(plugin.complaints.join(), /exited with 1: refused: \(token\)/);
});

test("token mode: an account that cannot be read gives no credentials", async () => {
  const accounts = new Accounts();
  accounts.get = async () => {
    throw new Error("no such account");
  };
  await using plugin = await Plugin.create("respond({})", { token: tokenSettings }, accounts);
  assert.deepEqual(await plugin.logins(), []);
  assert.match(plugin.complaints.join(), /no such account/);
});
