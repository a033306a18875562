import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import { CredentialError } from "./credentials.ts";
import { parseKubeconfig } from "./kubeconfig.ts";
import { UserCredentials } from "./user-credentials.ts";

const never = new AbortController().signal;
const v1 = "client.authentication.k8s.io/v1";
let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-exec-"));
});
after(() => rm(directory, { recursive: true }));

/** A plugin in shell: counts its runs, keeps what it was told, prints what the file `answer` holds. */
async function plugin(options: { exec?: object; cluster?: object; clock?: FakeClock } = {}) {
  const home = await mkdtemp(join(directory, "p-"));
  const program = join(home, "plugin");
  await writeFile(
    program,
    `#!/bin/sh\necho "$*|$EXTRA" >>"${home}/runs"\nprintf %s "$KUBERNETES_EXEC_INFO" >"${home}/info"\ncat "${home}/answer"\n. "${home}/end"\n`,
  );
  await chmod(program, 0o755);
  await writeFile(join(home, "end"), "");
  const exec = { apiVersion: v1, command: program, interactiveMode: "Never", ...options.exec };
  const access = await parseKubeconfig(
    JSON.stringify({
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
      clusters: [{ name: "k", cluster: { server: "https://api:6443/", ...options.cluster } }],
      users: [{ name: "u", user: { exec } }],
    }),
    join(home, "kubeconfig"),
  );
  const clock = options.clock ?? new FakeClock();
  const environment = { PATH: "/bin:/usr/bin", EXTRA: "inherited" };
  const authority = async (): Promise<Buffer> => Buffer.from("CA");
  return {
    clock,
    credentials: new UserCredentials(access, { clock, log: silentLogger, environment, authority }),
    answer: (status: unknown, more: object = {}) =>
      writeFile(join(home, "answer"), JSON.stringify({ kind: "ExecCredential", apiVersion: v1, status, ...more })),
    say: (text: string) => writeFile(join(home, "answer"), text),
    endWith: (line: string) => writeFile(join(home, "end"), line),
    runs: async () => (await readFile(join(home, "runs"), "utf8")).trim().split("\n"),
    info: async (): Promise<unknown> => JSON.parse(await readFile(join(home, "info"), "utf8")),
  };
}

test("a token is asked for once and kept until it expires", async () => {
  const { credentials, answer, runs, clock, info } = await plugin({
    exec: { args: ["a", "b c"], env: [{ name: "EXTRA", value: "own" }] },
  });
  await answer({ token: "one", expirationTimestamp: new Date(clock.now() + 60_000).toISOString() });
  const headers = await Promise.all([1, 2, 3].map(() => credentials.headers(never)));
  assert.deepEqual(headers, Array(3).fill({ authorization: "Bearer one" }));
  assert.deepEqual(await runs(), ["a b c|own"]);
  assert.deepEqual(await info(), { kind: "ExecCredential", apiVersion: v1, spec: { interactive: false } });
  await answer({ token: "two" });
  await clock.advance(59_999);
  assert.deepEqual(await credentials.headers(never), { authorization: "Bearer one" });
  await clock.advance(1);
  assert.deepEqual(await credentials.headers(never), { authorization: "Bearer two" });
  await clock.advance(365 * 24 * 3_600_000);
  assert.deepEqual(await credentials.headers(never), { authorization: "Bearer two" });
  assert.equal((await runs()).length, 2);
});

test("by a clock that is hours ahead every token has expired: the plugin is not run for every request", async () => {
  const { credentials, answer, runs, clock } = await plugin();
  await answer({ token: "one", expirationTimestamp: new Date(clock.now() - 3_600_000).toISOString() });
  for (let request = 0; request < 5; request++) await credentials.headers(never);
  assert.equal((await runs()).length, 1);
  await clock.advance(10_000);
  await credentials.headers(never);
  assert.equal((await runs()).length, 2);
  assert.equal(credentials.refused(), true);
  await credentials.headers(never);
  assert.equal((await runs()).length, 3, "what is refused is asked for at once");
});

test("a refused token is asked for again", async () => {
  const { credentials, answer, runs } = await plugin();
  await answer({ token: "one" });
  await credentials.headers(never);
  await answer({ token: "two" });
  assert.equal(credentials.refused(), true);
  assert.deepEqual(await credentials.headers(never), { authorization: "Bearer two" });
  assert.equal((await runs()).length, 2);
});

test("a certificate of a plugin goes to connections, not to headers", async () => {
  const { credentials, answer } = await plugin();
  await answer({ clientCertificateData: "CERT", clientKeyData: "KEY" });
  assert.deepEqual(await credentials.headers(never), {});
  const certificate = await credentials.certificate(never);
  assert.equal(certificate?.certificate.toString(), "CERT");
  assert.equal(certificate?.key.toString(), "KEY");
});

test("a plugin that asks for it learns about the cluster", async () => {
  const extensions = [{ name: "client.authentication.k8s.io/exec", extension: { audience: "x" } }];
  const { credentials, answer, info } = await plugin({
    exec: { provideClusterInfo: true },
    cluster: {
      "tls-server-name": "api.example",
      "proxy-url": "http://p:1/",
      "certificate-authority-data": "Q0E=",
      extensions,
    },
  });
  await answer({ token: "t" });
  await credentials.headers(never);
  assert.deepEqual(await info(), {
    kind: "ExecCredential",
    apiVersion: v1,
    spec: {
      interactive: false,
      cluster: {
        server: "https://api:6443",
        "tls-server-name": "api.example",
        "certificate-authority-data": "Q0E=",
        "proxy-url": "http://p:1/",
        config: { audience: "x" },
      },
    },
  });
});

describe("what goes wrong", () => {
  const failure = async (credentials: UserCredentials): Promise<string> => {
    const error = await credentials.headers(never).catch((e) => e);
    assert.ok(error instanceof CredentialError, String(error));
    return error.message;
  };

  test("a program that is not there comes with the hint how to install it", async () => {
    const { credentials } = await plugin({ exec: { command: "/nowhere/login", installHint: "apt install login" } });
    assert.equal(
      await failure(credentials),
      "The credential plugin /nowhere/login cannot be started: spawn /nowhere/login ENOENT\napt install login",
    );
  });

  test("a program that fails is quoted", async () => {
    const { credentials, answer, endWith } = await plugin();
    await answer({ token: "s3cr3t" });
    await endWith("echo 'no session' >&2; exit 3\n");
    const message = await failure(credentials);
    assert.match(message, /exited with 3: no session$/);
    assert.ok(!message.includes("s3cr3t"));
  });

  test("is not remembered", async () => {
    const { credentials, say, answer } = await plugin();
    await say("");
    await failure(credentials);
    await answer({ token: "t" });
    assert.deepEqual(await credentials.headers(never), { authorization: "Bearer t" });
  });

  for (const { name, text, expected } of [
    { name: "no JSON", text: "s3cr3t", expected: "it is not JSON" },
    {
      name: "another version",
      text: JSON.stringify({ kind: "ExecCredential", apiVersion: "v0", status: { token: "s3cr3t" } }),
      expected: `apiVersion: found "v0", want "${v1}"`,
    },
    {
      name: "no credential",
      text: JSON.stringify({ kind: "ExecCredential", apiVersion: v1, status: {} }),
      expected: "status: found neither a token nor a client certificate",
    },
    {
      name: "half a pair",
      text: JSON.stringify({
        kind: "ExecCredential",
        apiVersion: v1,
        status: { token: "s3cr3t", clientKeyData: "s3cr3t" },
      }),
      expected: "status: found only one of clientCertificateData and clientKeyData, want both or neither",
    },
    {
      name: "no time",
      text: JSON.stringify({
        kind: "ExecCredential",
        apiVersion: v1,
        status: { token: "s3cr3t", expirationTimestamp: "soon" },
      }),
      expected: "status.expirationTimestamp: want a time such as 2026-01-02T15:04:05Z",
    },
  ]) {
    test(name, async () => {
      const { credentials, say } = await plugin();
      await say(text);
      const message = await failure(credentials);
      assert.ok(message.endsWith(`gave an unusable answer: ${expected}`), message);
      assert.ok(!message.includes("s3cr3t"), message);
    });
  }
});
