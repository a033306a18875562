import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeManifest, decodeYaml } from "./manifest.ts";
import { describeProblem } from "./problem.ts";

async function problemsOf(text: string): Promise<readonly string[]> {
  const { problems } = await decodeManifest(text, ["Pod", "PodList"]);
  return problems.map((problem) => `${problem.severity} ${describeProblem(problem)}`);
}

const head = "apiVersion: v1\nkind: Pod\n";

test("a whole pod is decoded and deeply frozen", async () => {
  const { object, problems } = await decodeManifest(
    `${head}metadata:
  name: web
  labels: {app: web}
  creationTimestamp: null
spec:
  hostNetwork: yes
  containers:
  - name: a
    image: busybox
    args: ["80:80", 80:80, 2026-01-02, 12e03]
    ports:
    - containerPort: 80.0
    - containerPort: 0x1F
    resources:
      limits: {cpu: 0.5, memory: 18446744073709551616, example.com/x: "3"}
    livenessProbe:
      httpGet: {port: http}
  volumes:
  - name: v
    configMap: {defaultMode: 0644}
  - name: w
    secret: {defaultMode: 0o600}
`,
    ["Pod"],
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(object, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", labels: { app: "web" } },
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: "a",
          image: "busybox",
          args: ["80:80", "80:80", "2026-01-02", "12e03"],
          ports: [{ containerPort: 80 }, { containerPort: 31 }],
          resources: { limits: { cpu: "0.5", memory: "18446744073709551616", "example.com/x": "3" } },
          livenessProbe: { httpGet: { port: "http" } },
        },
      ],
      volumes: [
        { name: "v", configMap: { defaultMode: 0o644 } },
        { name: "w", secret: { defaultMode: 0o600 } },
      ],
    },
  });
  assert.ok(Object.isFrozen(object) && Object.isFrozen(object?.spec?.containers[0]?.ports?.[0]));
});

test("missing required fields get the zero value of their type, so that the type is true", async () => {
  const { object } = await decodeManifest(
    `${head}spec: {containers: [{ports: [{}], env: [{valueFrom: {fieldRef: {}}}]}, null]}`,
    ["Pod"],
  );
  assert.deepEqual(object?.spec?.containers, [
    { name: "", ports: [{ containerPort: 0 }], env: [{ name: "", valueFrom: { fieldRef: { fieldPath: "" } } }] },
    { name: "" },
  ]);
});

test("JSON with tabs and exponents is read as well", async () => {
  const { object, problems } = await decodeManifest(
    '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"spec": {"containers": [], "priority": 1e3}\n}',
    ["Pod"],
  );
  assert.deepEqual(problems, []);
  assert.equal(object?.spec?.priority, 1000);
});

test("sets, ordered maps and dates are read as what they are written as, and odd keys stay keys", async () => {
  const { object, problems } = await decodeManifest(
    `${head}metadata:
  labels: !!omap
    - b: c
  annotations: !!set {a, 2026-01-01}
spec:
  nodeSelector: {"__proto__": x, constructor: w, 5: z}
`,
    ["Pod"],
  );
  assert.deepEqual(problems.map(describeProblem), [
    'metadata.labels: Invalid value: [{"b":"c"}]: must be a map, found a list (line 5, column 5)',
  ]);
  assert.equal(object, undefined);
  const { object: second } = await decodeManifest(
    `${head}metadata: {annotations: !!set {a, 2026-01-01}}\nspec: {nodeSelector: {"__proto__": x, constructor: w, 5: z}}\n`,
    ["Pod"],
  );
  assert.deepEqual(second?.metadata?.annotations, { a: "", "2026-01-01": "" });
  assert.deepEqual(Object.entries(second?.spec?.nodeSelector ?? {}).sort(), [
    ["5", "z"],
    ["__proto__", "x"],
    ["constructor", "w"],
  ]);
});

test("anchors and merge keys work", async () => {
  const { object, problems } = await decodeManifest(
    `${head}spec:
  containers:
  - &base {name: a, image: i}
  - {<<: *base, name: b}
`,
    ["Pod"],
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(object?.spec?.containers, [
    { name: "a", image: "i" },
    { name: "b", image: "i" },
  ]);
});

for (const { name, text, wanted } of [
  { name: "empty", text: "", wanted: ["error The manifest is empty; wanted a Pod or PodList"] },
  { name: "only comments", text: "# later\n", wanted: ["error The manifest is empty; wanted a Pod or PodList"] },
  { name: "a list", text: "- a\n", wanted: ["error The manifest holds a list; wanted a Pod or PodList"] },
  { name: "a word", text: "hello\n", wanted: ["error The manifest holds a string; wanted a Pod or PodList"] },
  {
    name: "syntax",
    text: "apiVersion: v1\nkind: Pod: x\n",
    wanted: ["error Cannot parse as YAML: Nested mappings are not allowed in compact mappings (line 2, column 7)"],
  },
  {
    name: "duplicate keys",
    text: `${head}metadata:\n  name: a\n  "name": b\n`,
    wanted: ['error Cannot parse as YAML: The key "name" stands twice in the same map (line 5, column 3)'],
  },
  {
    name: "an alias bomb",
    text: `${head}${[..."bcdefg"].reduce((all, key) => `${all}${key}: &${key} [${`*${String.fromCharCode(key.charCodeAt(0) - 1)},`.repeat(9)}]\n`, "a: &a [x]\n")}`,
    wanted: ["error Cannot parse as YAML: Excessive alias count indicates a resource exhaustion attack"],
  },
  {
    name: "another kind",
    text: "apiVersion: apps/v1\nkind: Deployment\n",
    wanted: [
      'error apiVersion: Unsupported value: "apps/v1": supported values: "v1" (line 1, column 13)',
      'error kind: Unsupported value: "Deployment": supported values: "Pod", "PodList" (line 2, column 7)',
    ],
  },
  {
    name: "no kind, and what else is wrong",
    text: "spec: {hostPID: 3}\n",
    wanted: [
      'error apiVersion: Required value: must be "v1"',
      'error kind: Required value: must be "Pod" or "PodList"',
      "error spec.hostPID: Invalid value: 3: must be true or false, found a number (line 1, column 17)",
    ],
  },
  {
    name: "unknown fields",
    text: `${head}spec:\n  containerz: []\n  hostnetwork: true\n  zzz: 1\n`,
    wanted: [
      'warning spec.containerz: Unknown field, ignored; did you mean "containers"? (line 4, column 15)',
      'warning spec.hostnetwork: Unknown field, ignored; did you mean "hostNetwork"? (line 5, column 16)',
      "warning spec.zzz: Unknown field, ignored (line 6, column 8)",
    ],
  },
  {
    name: "more documents",
    text: `${head}---\nkind: [broken\n`,
    wanted: [
      "warning The file holds more than one YAML document; only the first is used, put each pod in a file of its own",
    ],
  },
  {
    name: "string wanted",
    text: `${head}metadata: {name: 5, labels: {a: true, b: [x]}}`,
    wanted: [
      "error metadata.name: Invalid value: 5: must be a string, found a number; put it in quotes (line 3, column 18)",
      "error metadata.labels[a]: Invalid value: true: must be a string, found a boolean; put it in quotes (line 3, column 33)",
      'error metadata.labels[b]: Invalid value: ["x"]: must be a string, found a list (line 3, column 42)',
    ],
  },
  {
    name: "integer wanted",
    text: `${head}spec:\n  containers:\n  - ports:\n    - containerPort: "80"\n    - containerPort: 1.5\n    - containerPort: 2147483648\n  terminationGracePeriodSeconds: 9007199254740993\n`,
    wanted: [
      'error spec.containers[0].ports[0].containerPort: Invalid value: "80": must be an integer, found a string; leave out the quotes (line 6, column 22)',
      "error spec.containers[0].ports[1].containerPort: Invalid value: 1.5: must be an integer, found a number (line 7, column 22)",
      "error spec.containers[0].ports[2].containerPort: Invalid value: 2147483648: must be between -2147483648 and 2147483647, inclusive (line 8, column 22)",
      "error spec.terminationGracePeriodSeconds: Invalid value: 9007199254740993: must be between -9007199254740991 and 9007199254740991, inclusive (line 9, column 34)",
    ],
  },
  {
    name: "list, map and object wanted",
    text: `${head}metadata: {labels: [a]}\nspec:\n  containers: {name: a}\n  securityContext: root\n`,
    wanted: [
      'error metadata.labels: Invalid value: ["a"]: must be a map, found a list (line 3, column 20)',
      'error spec.containers: Invalid value: {"name":"a"}: must be a list, found a map (line 5, column 15)',
      'error spec.securityContext: Invalid value: "root": must be an object, found a string (line 6, column 20)',
    ],
  },
  {
    name: "quantity, port and time wanted",
    text: `${head}metadata: {creationTimestamp: yesterday}\nspec:\n  containers:\n  - name: a\n    resources: {limits: {cpu: 1x, memory: [1]}}\n    livenessProbe: {tcpSocket: {port: [1]}}\n`,
    wanted: [
      'error metadata.creationTimestamp: Invalid value: "yesterday": must be a time such as "2026-01-31T12:00:00Z", found a string (line 3, column 31)',
      "error spec.containers[0].resources.limits[cpu]: Invalid value: \"1x\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', such as 500m or 1Gi (line 7, column 31)",
      "error spec.containers[0].resources.limits[memory]: Invalid value: [1]: must be a quantity such as 500m or 1Gi, found a list (line 7, column 43)",
      "error spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: [1]: must be an integer or a string, found a list (line 8, column 39)",
    ],
  },
] as const) {
  test(`decode: ${name}`, async () => assert.deepEqual(await problemsOf(text), wanted));
}

test("deep nesting is a problem, not a crash", async () => {
  const problems = await problemsOf("[".repeat(50_000));
  assert.ok(problems.length > 0 && problems.every((line) => line.startsWith("error Cannot parse as YAML")));
});

test("a very wrong file is reported up to a limit, with the rest counted", async () => {
  const problems = await problemsOf(`${head}spec: {containers: [${"1,".repeat(700)}]}`);
  assert.equal(problems.length, 501);
  assert.equal(problems.at(-1), "error 200 more problems are not shown");
});

test("values that may be secret are not repeated", async () => {
  const problems = await problemsOf(`${head}spec: {containers: [{name: a, env: [{name: PIN, value: 4711}]}]}`);
  assert.deepEqual(problems, [
    "error spec.containers[0].env[0].value: Invalid value: must be a string, found a number; put it in quotes (line 3, column 56)",
  ]);
});

test("config maps and secrets are decoded when asked for", async () => {
  const { object, problems } = await decodeManifest(
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: aGk=, b: '???'}\nstringData: {c: d}\n",
    ["ConfigMap", "Secret"],
  );
  assert.equal(object, undefined);
  assert.deepEqual(problems.map(describeProblem), [
    "data[b]: Invalid value: must be base64, found a string (line 4, column 20)",
  ]);
});

test("a long manifest is read beside the event loop, with the same result", async () => {
  const keys = Array.from({ length: 20_000 }, (_, index) => `    key-${index}: "value ${index}"`).join("\n");
  const head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: long\n  annotations:\n";
  const text = `${head}${keys}\nspec:\n  priority: 7\n  containers: [{ name: a, image: b }]\n`;
  // More turns of the event loop than a text read in one go would leave.
  let turns = 0;
  const count = (): void => {
    turns++;
    if (!done) setImmediate(count);
  };
  let done = false;
  setImmediate(count);
  const { object, problems } = await decodeManifest(text, ["Pod"]);
  done = true;
  assert.deepEqual(problems, []);
  assert.equal(object?.metadata?.annotations?.["key-19999"], "value 19999");
  assert.equal(object?.spec?.priority, 7);
  assert.ok(Object.isFrozen(object?.metadata?.annotations));
  assert.ok(turns > 100, `the event loop turned ${turns} times`);
});

test("problems of a long manifest are found, repeated keys with their place", async () => {
  const filler = `#${"x".repeat(40_000)}\n`;
  const { object, problems } = await decodeManifest(`${filler}kind: Pod\nmetadata: {}\nkind: Pod\n`, ["Pod"]);
  assert.equal(object, undefined);
  assert.deepEqual(
    problems.map(({ message, position }) => [message, position]),
    [['Cannot parse as YAML: The key "kind" stands twice in the same map', { line: 4, column: 1 }]],
  );
  const { problems: nested } = await decodeManifest(`${filler}${"[".repeat(200_000)}`, ["Pod"]);
  assert.ok(nested.length > 0);
});

test("plain YAML is read as the Kubernetes tools do, short or long", async () => {
  const filler = `#${"x".repeat(40_000)}\n`;
  for (const start of ["", filler]) {
    assert.deepEqual(await decodeYaml(`${start}a: 0644\nport: "80:80"\nodd: 80:80\nlist: [yes, 1.5, ~]\n`), {
      a: 420,
      port: "80:80",
      odd: "80:80",
      list: [true, 1.5, null],
    });
    await assert.rejects(decodeYaml(`${start}a: 1\na: 2\n`), /"a" stands twice/);
  }
});
