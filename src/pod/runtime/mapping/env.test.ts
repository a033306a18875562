import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import type { ConfigMap, Container, IdentifiedPod, Secret } from "../../../ground/model/index.ts";
import type { ContainerContext, PodVolume } from "./context.ts";
import { type ContainerEnv, containerEnv, withDeviceEnv } from "./env.ts";
import { envFileValue } from "./env-file.ts";

const base64 = (value: string | Buffer): string => Buffer.from(value).toString("base64");

const configMaps: Readonly<Record<string, ConfigMap>> = {
  settings: { data: { COLOR: "red", SIZE: "big", "odd.key": "kept" }, binaryData: { BINARY: base64("x") } },
  more: { data: { COLOR: "blue" } },
  empty: {},
};
const secrets: Readonly<Record<string, Secret>> = {
  login: { data: { USER: base64("root"), PASSWORD: base64("p$(COLOR)w") } },
  raw: { data: { BYTES: base64(Buffer.from([0xff, 0xfe, 0x41])) } },
};

const signal = new AbortController().signal;

function contextWith(changes: Partial<ContainerContext> = {}): ContainerContext {
  return exampleContext({
    readConfigMap: async (namespace, name) => (namespace === "shop" ? configMaps[name] : undefined),
    readSecret: async (namespace, name) => (namespace === "shop" ? secrets[name] : undefined),
    ...changes,
  });
}

async function envOf(
  fields: Partial<Container>,
  changes: Partial<ContainerContext> = {},
  spec: Partial<IdentifiedPod["spec"]> = {},
): Promise<ContainerEnv> {
  const container = exampleContainer(fields);
  return await containerEnv(examplePod({ containers: [container], ...spec }), container, contextWith(changes), signal);
}

async function shown(...args: Parameters<typeof envOf>): Promise<Record<string, string>> {
  const { variables } = await envOf(...args);
  return Object.fromEntries([...variables].map(([name, value]) => [name, value.toString()]));
}

const plain = (name: string, value: string): { name: string; value: string } => ({ name, value });

test("plain variables, the last of a name winning", async () => {
  assert.deepEqual(await shown({ env: [plain("A", "1"), plain("B", "2"), plain("A", "3")] }), { A: "3", B: "2" });
});

test("variables refer to earlier ones, not to later or unknown ones", async () => {
  const env = [plain("A", "$(B)-$(C)"), plain("B", "b"), plain("C", "$(B)$$(B)"), plain("D", "$(C)")];
  assert.deepEqual(await shown({ env }), { A: "$(B)-$(C)", B: "b", C: "b$(B)", D: "b$(B)" });
});

test("a variable without value or source is empty", async () => {
  assert.deepEqual(await shown({ env: [{ name: "A" }, plain("B", ""), { name: "C", valueFrom: {} }] }), {
    A: "",
    B: "",
    C: "",
  });
});

test("a value stands before a source", async () => {
  const valueFrom = { fieldRef: { fieldPath: "metadata.name" } };
  assert.deepEqual(await shown({ env: [{ name: "A", value: "v", valueFrom }] }), { A: "v" });
});

test("envFrom in its order, with prefixes, keys as they are, binary data left out", async () => {
  const envFrom = [
    { configMapRef: { name: "settings" } },
    { prefix: "P_", configMapRef: { name: "more" } },
    { configMapRef: { name: "more" } },
    { secretRef: { name: "login" } },
    { configMapRef: { name: "empty" } },
    {},
  ];
  assert.deepEqual(await shown({ envFrom }), {
    COLOR: "blue",
    SIZE: "big",
    "odd.key": "kept",
    P_COLOR: "blue",
    USER: "root",
    PASSWORD: "p$(COLOR)w",
  });
});

test("env overwrites envFrom and can refer to it", async () => {
  const envFrom = [{ configMapRef: { name: "settings" } }];
  const env = [plain("COLOR", "dark $(COLOR)"), plain("TEXT", "$(COLOR) and $(SIZE)")];
  const { COLOR, TEXT } = await shown({ envFrom, env });
  assert.deepEqual([COLOR, TEXT], ["dark red", "dark red and big"]);
});

test("keys of config maps and secrets; what they hold is not expanded", async () => {
  const env = [
    plain("COLOR", "green"),
    { name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "SIZE" } } },
    { name: "B", valueFrom: { secretKeyRef: { name: "login", key: "PASSWORD" } } },
  ];
  assert.deepEqual(await shown({ env }), { COLOR: "green", A: "big", B: "p$(COLOR)w" });
});

test("optional sources that are missing leave nothing behind", async () => {
  const envFrom = [{ configMapRef: { name: "nope", optional: true } }, { secretRef: { name: "nope", optional: true } }];
  const env = [
    { name: "A", valueFrom: { configMapKeyRef: { name: "nope", key: "k", optional: true } } },
    { name: "B", valueFrom: { configMapKeyRef: { name: "settings", key: "nope", optional: true } } },
    { name: "C", valueFrom: { secretKeyRef: { name: "nope", key: "k", optional: true } } },
    { name: "D", valueFrom: { secretKeyRef: { name: "login", key: "nope", optional: true } } },
    plain("E", "[$(A)]"),
  ];
  assert.deepEqual(await shown({ envFrom, env }), { E: "[$(A)]" });
});

for (const [name, fields, message] of [
  ["config map", { envFrom: [{ configMapRef: { name: "nope" } }] }, 'configmap "nope" not found'],
  ["secret", { envFrom: [{ secretRef: { name: "nope" } }] }, 'secret "nope" not found'],
  [
    "config map of a key",
    { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "nope", key: "k" } } }] },
    'configmap "nope" not found',
  ],
  [
    "key of a config map",
    { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "nope" } } }] },
    "couldn't find key nope in ConfigMap shop/settings",
  ],
  [
    "key of a secret",
    { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "login", key: "nope", optional: false } } }] },
    "couldn't find key nope in Secret shop/login",
  ],
  [
    "a key only in binary data",
    { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "BINARY" } } }] },
    "couldn't find key BINARY in ConfigMap shop/settings",
  ],
] as const) {
  test(`missing ${name}: ${message}`, async () => {
    await assert.rejects(envOf(fields), { name: "ConfigError", message });
  });
}

for (const [name, fields, message] of [
  [
    "config map",
    { envFrom: [{ configMapRef: { name: "settings", optional: true } }] },
    "couldn't get configMap shop/settings, no kubeClient defined",
  ],
  [
    "secret",
    { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "login", key: "USER" } } }] },
    "couldn't get secret shop/login, no kubeClient defined",
  ],
] as const) {
  test(`without an API server there is no ${name}, optional or not`, async () => {
    await assert.rejects(envOf(fields, { readConfigMap: undefined, readSecret: undefined }), {
      name: "ConfigError",
      message,
    });
  });
}

test("an API error is passed on as it is", async () => {
  const readConfigMap = async (): Promise<ConfigMap> => {
    throw new Error("configmaps is forbidden");
  };
  await assert.rejects(
    envOf({ envFrom: [{ configMapRef: { name: "settings", optional: true } }] }, { readConfigMap }),
    {
      message: "configmaps is forbidden",
    },
  );
});

test("each config map is read once", async () => {
  let reads = 0;
  const readConfigMap = async (): Promise<ConfigMap> => {
    reads++;
    return { data: { A: "1" } };
  };
  const reference = { configMapKeyRef: { name: "settings", key: "A" } };
  await envOf(
    {
      envFrom: [{ configMapRef: { name: "settings" } }],
      env: [
        { name: "X", valueFrom: reference },
        { name: "Y", valueFrom: reference },
      ],
    },
    { readConfigMap },
  );
  assert.equal(reads, 1);
});

test("a secret need not be text, not even inside another variable", async () => {
  const env = [
    { name: "RAW", valueFrom: { secretKeyRef: { name: "raw", key: "BYTES" } } },
    plain("AROUND", "ü$(RAW)!"),
  ];
  const { variables } = await envOf({ env });
  assert.deepEqual(variables.get("RAW"), Buffer.from([0xff, 0xfe, 0x41]));
  assert.deepEqual(variables.get("AROUND"), Buffer.from([0xc3, 0xbc, 0xff, 0xfe, 0x41, 0x21]));
});

test("fields of the pod", async () => {
  const field = (name: string, fieldPath: string): { name: string; valueFrom: object } => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  });
  const env = [
    field("NAME", "metadata.name"),
    field("IP", "status.podIP"),
    field("IPS", "status.podIPs"),
    field("HOST", "status.hostIP"),
    plain("URL", "http://$(IP)/"),
  ];
  const dns = { ...exampleContext().dns, nodeIps: ["fd00::1", "10.0.0.1"] };
  assert.deepEqual(await shown({ env }, { podIps: ["10.1.0.2", "fd00::2"], dns }), {
    NAME: "web",
    IP: "fd00::2",
    IPS: "fd00::2,10.1.0.2",
    HOST: "fd00::1",
    URL: "http://fd00::2/",
  });
});

test("one long value under many names is refused before it fills the memory", async () => {
  const long = "x".repeat(200_000);
  const readConfigMap = async (): Promise<ConfigMap> => ({ data: { LONG: long } });
  const many = (valueFrom: object) => Array.from({ length: 5_000 }, (_, index) => ({ name: `V${index}`, valueFrom }));
  const key = { configMapKeyRef: { name: "long", key: "LONG" } };
  const prefixed = Array.from({ length: 5_000 }, (_, index) => ({
    prefix: `P${index}`,
    configMapRef: { name: "long" },
  }));
  for (const fields of [{ env: many(key) }, { envFrom: prefixed }]) {
    await assert.rejects(envOf(fields, { readConfigMap }), /add up to more than 8 MiB/);
  }
  assert.equal(Object.keys(await shown({ env: many(key).slice(0, 20) }, { readConfigMap })).length, 20);
});

test("on the host's network the pod's address is the node's", async () => {
  const env = [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }];
  assert.deepEqual(await shown({ env }, { podIps: [] }, { hostNetwork: true }), { IP: "10.0.0.1" });
});

test("an unsupported field is refused", async () => {
  const env = [{ name: "A", valueFrom: { fieldRef: { fieldPath: "status.phase" } } }];
  await assert.rejects(envOf({ env }), { message: "unsupported fieldPath: status.phase" });
});

test("resources of this and of another container, defaulted from the node", async () => {
  const resource = (
    name: string,
    selector: { resource: string; containerName?: string; divisor?: string },
  ): object => ({
    name,
    valueFrom: { resourceFieldRef: selector },
  });
  const env = [
    resource("OWN", { resource: "requests.cpu", divisor: "1m" }),
    resource("NODE", { resource: "limits.memory", divisor: "1Gi" }),
    resource("OTHER", { resource: "limits.cpu", containerName: "other" }),
  ] as Container["env"];
  const other = exampleContainer({ name: "other", resources: { limits: { cpu: "3" } } });
  const own = exampleContainer({ env, resources: { requests: { cpu: "250m" } } });
  const { variables } = await containerEnv(examplePod({ containers: [own, other] }), own, contextWith(), signal);
  assert.deepEqual(
    [...variables].map(([name, value]) => `${name}=${value}`),
    ["OWN=250", "NODE=15", "OTHER=3"],
  );
});

test("expansion of other texts uses the finished environment", async () => {
  const env = await envOf({ env: [plain("A", "one"), plain("EMPTY", "")] });
  assert.equal(env.expand("$(A) $(B) $$(A) ü"), "one $(B) $(A) ü");
  assert.equal(env.expandStrictly("logs/$(A)"), "logs/one");
  assert.throws(() => env.expandStrictly("$(B)/$(EMPTY)"), { message: "missing value for B, EMPTY" });
});

test("variables of devices lie below the container's own", async () => {
  const env = withDeviceEnv(
    await envOf({ env: [plain("A", "own")] }),
    new Map([
      ["A", "plugin"],
      ["GPU", "0"],
    ]),
  );
  assert.deepEqual(
    [...env.variables].map(([name, value]) => `${name}=${value}`),
    ["A=own", "GPU=0"],
  );
  assert.equal(env.expand("$(GPU)$(A)"), "0own");
});

const volumes = new Map<string, PodVolume>([
  ["files", { type: "filesystem", hostPath: "/vol", readOnly: false, relabel: false }],
]);
const files: Readonly<Record<string, string>> = {
  "/vol/app.env": "# comment\n\nCOLOR = red \nEMPTY=\nLONG=a \\\n  b\nURL=http://x?a=b\n",
  "/vol/bad.env": "NOT A PAIR\n",
  "/vol/huge.env": `HUGE=${"x".repeat(32 * 1024 + 1)}\n`,
};

async function fromFile(
  path: string,
  key: string,
  more: { optional?: boolean; volumeName?: string; envFiles?: boolean } = {},
): Promise<Record<string, string>> {
  const { envFiles = true, volumeName = "files", optional } = more;
  return await shown(
    { env: [{ name: "V", valueFrom: { fileKeyRef: { volumeName, path, key, optional } } }] },
    {
      volumes,
      gates: { ...exampleContext().gates, envFiles },
      readVolumeFile: async (volumePath, file) => {
        const text = files[`${volumePath}/${file}`];
        if (text === undefined) throw new Error("ENOENT");
        return text;
      },
    },
  );
}

test("env files: behind their gate", async () => {
  assert.deepEqual(await fromFile("app.env", "COLOR"), { V: "red" });
  assert.deepEqual(await fromFile("app.env", "LONG"), { V: "a b" });
  assert.deepEqual(await fromFile("app.env", "URL"), { V: "http://x?a=b" });
  assert.deepEqual(await fromFile("app.env", "NOPE", { optional: true }), {});
  assert.deepEqual(await fromFile("app.env", "COLOR", { envFiles: false }), { V: "" });
});

const longKey = "k".repeat(129);
for (const [name, attempt, message] of [
  [
    "no such key",
    () => fromFile("app.env", "NOPE"),
    'environment variable key "NOPE" not found in file "/vol/app.env"',
  ],
  ["no such file", () => fromFile("nope.env", "A"), "couldn't parse env file"],
  ["no such file, optional", () => fromFile("nope.env", "A", { optional: true }), "couldn't parse env file"],
  ["a bad file", () => fromFile("bad.env", "A"), "couldn't parse env file"],
  [
    "no such volume",
    () => fromFile("app.env", "A", { volumeName: "nope" }),
    'cannot find the volume "nope" referenced by FileKeyRef',
  ],
  [
    "a long key",
    () => fromFile("app.env", longKey),
    `environment variable key "${longKey}" exceeds maximum length of 128 characters`,
  ],
  [
    "a long value",
    () => fromFile("huge.env", "HUGE"),
    'environment variable value for key "HUGE" exceeds maximum size of 32KB',
  ],
] as const) {
  test(`env files: ${name}`, async () => {
    await assert.rejects(attempt(), { name: "ConfigError", message });
  });
}

for (const text of ["A=1\\\n\nB=2", "A=1\\\n# x\nB=2", "A=1\\", "=1", "A"]) {
  test(`env files: ${JSON.stringify(text)} is malformed`, () =>
    assert.throws(() => envFileValue(text, "B"), { name: "EnvFileError" }));
}
