import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KubeconfigError, loadKubeconfig, parseKubeconfig } from "./kubeconfig.ts";

const file = "/etc/kubernetes/kubelet.conf";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

function config(cluster: object, user: object = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [
      { name: "elsewhere", context: { cluster: "none", user: "none" } },
      { name: "here", context: { cluster: "k", user: "u" } },
    ],
    clusters: [{ name: "k", cluster }],
    users: [{ name: "u", user }],
  });
}

async function problemsOf(text: string): Promise<readonly string[]> {
  try {
    await parseKubeconfig(text, file);
  } catch (error) {
    assert.ok(error instanceof KubeconfigError, String(error));
    assert.equal(error.file, file);
    assert.ok(error.message.startsWith(`Cannot use the kubeconfig ${file}: `));
    return error.problems;
  }
  return [];
}

test("the file that kubeadm writes", async () => {
  const access = await parseKubeconfig(
    `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64("CA")}
    server: https://10.0.0.1:6443
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
preferences: {}
users:
- name: default-auth
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`,
    file,
  );
  assert.equal(access.server.href, "https://10.0.0.1:6443/");
  assert.deepEqual(access.trust, { type: "authority", certificates: { type: "data", data: Buffer.from("CA") } });
  const pem = { type: "file", path: "/var/lib/kubelet/pki/kubelet-client-current.pem" };
  assert.deepEqual(access.user.certificate, { certificate: pem, key: pem });
  assert.equal(access.namespace, "default");
});

test("relative paths start at the kubeconfig's directory", async () => {
  const { trust, user } = await parseKubeconfig(
    config(
      { server: "https://a", "certificate-authority": "pki/ca.crt" },
      { "client-certificate": "c.crt", "client-key": "../c.key", tokenFile: "tokens/t" },
    ),
    file,
  );
  assert.deepEqual(trust, { type: "authority", certificates: { type: "file", path: "/etc/kubernetes/pki/ca.crt" } });
  assert.deepEqual(user.certificate?.key, { type: "file", path: "/etc/c.key" });
  assert.equal(user.tokenFile, "/etc/kubernetes/tokens/t");
});

test("data in the file wins over a path", async () => {
  const { user } = await parseKubeconfig(
    config(
      { server: "https://a" },
      {
        "client-certificate": "c.crt",
        "client-certificate-data": base64("C"),
        "client-key": "c.key",
        "client-key-data": base64("K"),
      },
    ),
    file,
  );
  assert.deepEqual(user.certificate?.certificate, { type: "data", data: Buffer.from("C") });
});

for (const { server, user, expected } of [
  { server: "https://a:6443/prefix", user: {}, expected: "https://a:6443/prefix" },
  { server: "a:6443", user: {}, expected: "http://a:6443/" },
  { server: "a:6443", user: { "client-certificate": "c", "client-key": "k" }, expected: "https://a:6443/" },
  { server: "http://[::1]:8080", user: {}, expected: "http://[::1]:8080/" },
]) {
  test(`server ${server} ${JSON.stringify(user)}`, async () => {
    assert.equal((await parseKubeconfig(config({ server }, user), file)).server.href, expected);
  });
}

test("impersonation becomes headers", async () => {
  const user = {
    token: "t",
    as: "jane",
    "as-uid": "42",
    "as-groups": ["a", "b"],
    "as-user-extra": { "Acme/Scope": ["x"] },
  };
  const { user: read } = await parseKubeconfig(config({ server: "https://a" }, user), file);
  assert.deepEqual(read.impersonation, {
    "impersonate-user": ["jane"],
    "impersonate-uid": ["42"],
    "impersonate-group": ["a", "b"],
    "impersonate-extra-acme%2fscope": ["x"],
  });
});

test("an exec plugin", async () => {
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "bin/login",
    args: ["--now"],
    env: [{ name: "A", value: "1" }],
    interactiveMode: "IfAvailable",
    provideClusterInfo: true,
  };
  const { user } = await parseKubeconfig(config({ server: "https://a" }, { exec }), file);
  assert.deepEqual(user.exec, {
    apiVersion: exec.apiVersion,
    command: "/etc/kubernetes/bin/login",
    args: ["--now"],
    env: { A: "1" },
    installHint: "",
    provideClusterInfo: true,
  });
  const bare = { ...exec, command: "login" };
  assert.equal(
    (await parseKubeconfig(config({ server: "https://a" }, { exec: bare }), file)).user.exec?.command,
    "login",
  );
});

describe("what is wrong is said with field, found and wanted", () => {
  const execV1 = { apiVersion: "client.authentication.k8s.io/v1", command: "x", interactiveMode: "Never" };
  for (const { name, text, expected } of [
    {
      name: "no current context",
      text: JSON.stringify({ contexts: [{ name: "a", context: {} }] }),
      expected: ['current-context: found nothing, want the name of one of the contexts ("a")'],
    },
    {
      name: "an empty file",
      text: "",
      expected: ["current-context: found nothing, want the name of one of the contexts (there are none)"],
    },
    {
      name: "a context that is not there",
      text: JSON.stringify({ "current-context": "b", contexts: [{ name: "a", context: {} }] }),
      expected: ['current-context: found "b", want the name of one of the contexts ("a")'],
    },
    {
      name: "a cluster that is not there",
      text: JSON.stringify({ "current-context": "a", contexts: [{ name: "a", context: { cluster: "x" } }] }),
      expected: ['contexts[0].context.cluster: found "x", want the name of one of the clusters (there are none)'],
    },
    {
      name: "a user that is not there",
      text: config({ server: "https://a" }).replace('"users":[{"name":"u"', '"users":[{"name":"v"'),
      expected: ['contexts[1].context.user: found "u", want the name of one of the users ("v")'],
    },
    {
      name: "the same name twice",
      text: JSON.stringify({
        "current-context": "a",
        contexts: [{ name: "a", context: { cluster: "k" } }],
        clusters: [
          { name: "k", cluster: { server: "https://a" } },
          { name: "k", cluster: { server: "https://b" } },
        ],
      }),
      expected: ['clusters[1].name: "k" stands twice; want one entry'],
    },
    {
      name: "no server",
      text: config({}),
      expected: ["clusters[0].cluster.server: found nothing, want an address such as https://10.0.0.1:6443"],
    },
    {
      name: "a server of another kind",
      text: config({ server: "ftp://me:pw@a" }),
      expected: ['clusters[0].cluster.server: found "ftp://<masked>@a", want an address such as https://10.0.0.1:6443'],
    },
    {
      name: "authority and insecure",
      text: config({ server: "https://a", "certificate-authority": "ca", "insecure-skip-tls-verify": true }),
      expected: [
        "clusters[0].cluster.insecure-skip-tls-verify: found true beside a certificate authority; want only one of them",
      ],
    },
    {
      name: "data that is not base64",
      text: config({ server: "https://a", "certificate-authority-data": "-----BEGIN" }),
      expected: [
        "clusters[0].cluster.certificate-authority-data: found text that is not base64; want base64 of a PEM file",
      ],
    },
    {
      name: "a proxy of another kind",
      text: config({ server: "https://a", "proxy-url": "ssh://user:pw@p" }),
      expected: ["clusters[0].cluster.proxy-url: want an address that starts with http://, https:// or socks5://"],
    },
    {
      name: "a certificate without its key",
      text: config({ server: "https://a" }, { "client-certificate": "c" }),
      expected: ["users[0].user.client-key: found nothing beside a client certificate; want its key"],
    },
    {
      name: "two ways to say who we are",
      text: config({ server: "https://a" }, { token: "t", username: "u", exec: execV1 }),
      expected: [
        "users[0].user.exec: found beside a token or password; want only one way to say who we are",
        "users[0].user.username: found beside a token; want only one way to say who we are",
      ],
    },
    {
      name: "an auth provider",
      text: config({ server: "https://a" }, { "auth-provider": { name: "gcp" } }),
      expected: ["users[0].user.auth-provider: built-in providers are gone from Kubernetes; want an exec plugin"],
    },
    {
      name: "a token of the wrong type, without saying it",
      text: config({ server: "https://a" }, { token: 12345 }),
      expected: ["users[0].user.token: found a number, want a string"],
    },
    {
      name: "an exec plugin with everything wrong",
      text: config({ server: "https://a" }, { exec: { apiVersion: "client.authentication.k8s.io/v1alpha1" } }),
      expected: [
        "users[0].user.exec.command: found nothing, want a program",
        'users[0].user.exec.apiVersion: found "client.authentication.k8s.io/v1alpha1", want client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1',
      ],
    },
    {
      name: "v1 without interactiveMode",
      text: config({ server: "https://a" }, { exec: { ...execV1, interactiveMode: "" } }),
      expected: ["users[0].user.exec.interactiveMode: found nothing, want Never, IfAvailable, Always"],
    },
    {
      name: "a plugin that needs a person",
      text: config({ server: "https://a" }, { exec: { ...execV1, interactiveMode: "Always" } }),
      expected: [
        'users[0].user.exec.interactiveMode: found "Always", but an agent has no terminal; want Never or IfAvailable',
      ],
    },
    {
      name: "groups without a user",
      text: config({ server: "https://a" }, { "as-groups": ["g"] }),
      expected: ["users[0].user.as: found nothing beside other impersonation fields; want a user name"],
    },
  ]) {
    test(name, async () => assert.deepEqual(await problemsOf(text), expected));
  }

  test("broken YAML, without quoting the file", async () => {
    const [problem = "", ...others] = await problemsOf("users:\n- user: {token: s3cr3t\n  x: [\n");
    assert.equal(others.length, 0);
    assert.match(problem, /^not valid YAML: /);
    assert.ok(!problem.includes("s3cr3t"));
  });

  test("a file that is not there", async () => {
    await assert.rejects(loadKubeconfig("/nowhere/conf"), {
      name: "KubeconfigError",
      message: "Cannot use the kubeconfig /nowhere/conf: ENOENT: no such file or directory, open '/nowhere/conf'",
    });
  });
});
