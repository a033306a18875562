import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CredentialProviderConfigError, loadCredentialProviders } from "./plugin-config.ts";

class Directory implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(...programs: readonly string[]): Promise<Directory> {
    const directory = new Directory(await mkdtemp(join(tmpdir(), "plugin-config-")));
    await mkdir(join(directory.path, "bin"));
    for (const program of programs) {
      await writeFile(join(directory.path, "bin", program), "#!/bin/sh\n");
      await chmod(join(directory.path, "bin", program), 0o755);
    }
    return directory;
  }

  async write(name: string, content: string): Promise<string> {
    await writeFile(join(this.path, name), content);
    return join(this.path, name);
  }

  load(name: string, allowTokens = true) {
    return loadCredentialProviders({ configPath: join(this.path, name), binDir: join(this.path, "bin"), allowTokens });
  }

  async problems(name: string, allowTokens = true): Promise<readonly string[]> {
    let found: readonly string[] = [];
    await assert.rejects(this.load(name, allowTokens), (error) => {
      assert.ok(error instanceof CredentialProviderConfigError, String(error));
      found = error.problems.map((problem) => problem.replaceAll(`${this.path}/`, ""));
      return true;
    });
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true });
  }
}

function config(provider: object, apiVersion = "kubelet.config.k8s.io/v1"): string {
  return JSON.stringify({ apiVersion, kind: "CredentialProviderConfig", providers: [provider] });
}

const plain = {
  name: "plain",
  matchImages: ["*.example.com"],
  defaultCacheDuration: "12h",
  apiVersion: "credentialprovider.kubelet.k8s.io/v1",
};
const token = { serviceAccountTokenAudience: "aud", cacheType: "Token", requireServiceAccount: true };

test("a YAML file with everything set", async () => {
  await using directory = await Directory.create("full");
  await directory.write(
    "config.yaml",
    `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: full
    matchImages: ["*.example.com:5000/team"]
    defaultCacheDuration: 1h30m
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    args: [get-credentials, -v]
    env: [{name: REGION, value: north}, {name: EMPTY}]
    tokenAttributes:
      serviceAccountTokenAudience: aud
      cacheType: ServiceAccount
      requireServiceAccount: true
      requiredServiceAccountAnnotationKeys: [example.com/role]
      optionalServiceAccountAnnotationKeys: [extra]
`,
  );
  const { providers, hash } = await directory.load("config.yaml");
  assert.deepEqual(providers, [
    {
      name: "full",
      matchImages: [{ labels: ["*", "example", "com"], port: "5000", path: "/team" }],
      defaultCacheMs: 5_400_000,
      apiVersion: "credentialprovider.kubelet.k8s.io/v1",
      args: ["get-credentials", "-v"],
      env: [
        { name: "REGION", value: "north" },
        { name: "EMPTY", value: "" },
      ],
      token: {
        audience: "aud",
        cacheBy: "ServiceAccount",
        requireServiceAccount: true,
        requiredAnnotations: ["example.com/role"],
        optionalAnnotations: ["extra"],
      },
    },
  ]);
  assert.match(hash, /^sha256:[0-9a-f]{64}$/);
});

test("a directory: .json, .yaml and .yml directly inside, in order of name", async () => {
  await using directory = await Directory.create("one", "two", "three");
  await mkdir(join(directory.path, "conf", "nested.yaml"), { recursive: true });
  await directory.write("conf/20.yml", config({ ...plain, name: "two" }, "kubelet.config.k8s.io/v1beta1"));
  await directory.write("conf/10.json", config({ ...plain, name: "one" }, "kubelet.config.k8s.io/v1alpha1"));
  await directory.write("conf/30.yaml", config({ ...plain, name: "three" }));
  await directory.write("conf/notes.txt", "not a config");
  const { providers } = await directory.load("conf");
  assert.deepEqual(
    providers.map(({ name }) => name),
    ["one", "two", "three"],
  );
});

test("a directory without config files, a missing file, a name defined twice", async () => {
  await using directory = await Directory.create("plain");
  await mkdir(join(directory.path, "empty"));
  assert.deepEqual(await directory.problems("empty"), [
    `no .json, .yaml or .yml files found in directory ${directory.path}/empty`.replace(`${directory.path}/`, ""),
  ]);
  assert.match((await directory.problems("absent"))[0] ?? "", /^cannot read absent: ENOENT/);
  await mkdir(join(directory.path, "twice"));
  await directory.write("twice/a.json", config(plain));
  await directory.write("twice/b.json", config(plain));
  assert.deepEqual(await directory.problems("twice"), [
    'twice/b.json: provider "plain" is already defined in twice/a.json',
  ]);
});

test("programs must be there and executable", async () => {
  await using directory = await Directory.create("plain");
  await directory.write("config.json", config({ ...plain, name: "absent" }));
  assert.deepEqual(await directory.problems("config.json"), [
    "plugin binary executable bin/absent did not exist or is not executable",
  ]);
  await directory.write("bin/data", "no program");
  await directory.write("config.json", config({ ...plain, name: "data" }));
  assert.deepEqual(await directory.problems("config.json"), [
    "plugin binary executable bin/data did not exist or is not executable",
  ]);
  await directory.write("config.json", config(plain));
  await rm(join(directory.path, "bin"), { recursive: true });
  assert.deepEqual(await directory.problems("config.json"), [
    `plugin binary directory ${directory.path}/bin did not exist`.replace(`${directory.path}/`, ""),
  ]);
});

for (const { about, content, problems, allowTokens = true } of [
  {
    about: "wrong group and kind, no providers",
    content: '{"apiVersion":"v1","kind":"Pod"}',
    problems: [
      'apiVersion: found "v1", want one of kubelet.config.k8s.io/v1, kubelet.config.k8s.io/v1beta1, kubelet.config.k8s.io/v1alpha1',
      'kind: found "Pod", want "CredentialProviderConfig"',
      "providers: at least 1 item in plugins is required",
    ],
  },
  {
    about: "everything required is missing",
    content: config({ name: "plain" }),
    problems: [
      "providers[0].matchImages: at least 1 item in matchImages is required",
      'providers[0].apiVersion: found "", want one of credentialprovider.kubelet.k8s.io/v1, credentialprovider.kubelet.k8s.io/v1beta1, credentialprovider.kubelet.k8s.io/v1alpha1',
      'providers[0].defaultCacheDuration: required, for example "12h"',
    ],
  },
  {
    about: "unknown fields and wrong types",
    content: config({ ...plain, args: "get", extra: 1, env: [{ name: "A", value: "b", secret: "c" }] }),
    problems: [
      "providers[0].args: found a string, want a list of strings",
      "providers[0].env[0].secret: unknown field",
      "providers[0].extra: unknown field",
    ],
  },
  {
    about: "bad pattern and durations",
    content: config({ ...plain, matchImages: ["a b", ""], defaultCacheDuration: "-1s" }),
    problems: [
      'providers[0].matchImages[0]: "a b" is not host[:port][/path]',
      'providers[0].matchImages[1]: "" is not host[:port][/path]',
      'providers[0].defaultCacheDuration: "-1s" must not be negative',
    ],
  },
  {
    about: "a duration that is none",
    content: config({ ...plain, defaultCacheDuration: "12" }),
    problems: ['providers[0].defaultCacheDuration: "12" is not a duration such as "12h"'],
  },
  {
    about: "token attributes in an older config version",
    content: config({ ...plain, tokenAttributes: token }, "kubelet.config.k8s.io/v1beta1"),
    problems: ["providers[0].tokenAttributes: unknown field"],
  },
  {
    about: "token attributes with an older protocol",
    content: config({ ...plain, apiVersion: "credentialprovider.kubelet.k8s.io/v1beta1", tokenAttributes: token }),
    problems: ["providers[0].tokenAttributes: needs apiVersion credentialprovider.kubelet.k8s.io/v1"],
  },
  {
    about: "token attributes while the gate is off",
    content: config({ ...plain, tokenAttributes: token }),
    allowTokens: false,
    problems: [
      "providers[0].tokenAttributes: needs the feature gate KubeletServiceAccountTokenForCredentialProviders, which is off",
    ],
  },
  {
    about: "token attributes left empty",
    content: config({ ...plain, tokenAttributes: {} }),
    problems: [
      "providers[0].tokenAttributes.serviceAccountTokenAudience: required",
      'providers[0].tokenAttributes.cacheType: found "", want ServiceAccount or Token',
      "providers[0].tokenAttributes.requireServiceAccount: required",
    ],
  },
  {
    about: "annotation keys that clash, repeat or are none",
    content: config({
      ...plain,
      tokenAttributes: {
        ...token,
        requireServiceAccount: false,
        requiredServiceAccountAnnotationKeys: ["a.io/x", "a.io/x", "bad key"],
        optionalServiceAccountAnnotationKeys: ["a.io/x"],
      },
    }),
    problems: [
      'providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys[1]: duplicate value "a.io/x"',
      'providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys[2]: "bad key" is no label key',
      "providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys: needs requireServiceAccount true",
      'providers[0].tokenAttributes: annotation key "a.io/x" is both required and optional',
    ],
  },
]) {
  test(`refused: ${about}`, async () => {
    await using directory = await Directory.create("plain");
    await directory.write("config.json", content);
    assert.deepEqual(
      await directory.problems("config.json", allowTokens),
      problems.map((problem) => `config.json: ${problem}`),
    );
  });
}

for (const name of ["", "a/b", "a b", ".", ".."]) {
  test(`refused: the name "${name}"`, async () => {
    await using directory = await Directory.create();
    await directory.write("config.json", config({ ...plain, name }));
    const problems = await directory.problems("config.json");
    assert.match(problems[0] ?? "", /^config\.json: providers\[0\]\.name: /);
  });
}

test("refused: a doubled key and broken YAML, each with its place", async () => {
  await using directory = await Directory.create();
  await directory.write("config.yaml", "kind: A\nkind: B\n");
  assert.match((await directory.problems("config.yaml"))[0] ?? "", /^config\.yaml: Map keys must be unique at line 2/);
  await directory.write("config.yaml", "providers: [\n");
  assert.match((await directory.problems("config.yaml"))[0] ?? "", /at line 2/);
});
