import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { applyCommand } from "./apply-command.ts";
import { type ApplyAnswer, applyText } from "./apply-text.ts";

const at = 1_700_000_000_000;
const pod: NonNullable<ApplyAnswer["pod"]> = {
  namespace: "default",
  name: "web-vm",
  qosClass: "Burstable",
  priority: 0,
  isCritical: false,
  filledIn: [{ field: "spec.restartPolicy", value: '"Always"' }],
  presence: "new",
  namesakes: [],
  verdict: { type: "admitted", preempts: [] },
  objections: [],
  areSumsBinding: true,
  sums: [{ resource: "cpu", has: "2", promised: "500m", asks: "250m", isEnough: true }],
  hostPorts: [],
  cgroup: { path: "/kubepods/burstable/podu1", files: { "cpu.weight": "10", "memory.max": "134217728" } },
  containers: [
    {
      name: "main",
      kind: "regular",
      cpuShares: 256,
      cpuQuotaUs: 50_000,
      cpuPeriodUs: 100_000,
      memoryLimitBytes: 134_217_728,
      oomScoreAdj: 992,
      cpus: "2-3",
      memoryNodes: "",
    },
  ],
  volumes: [
    { name: "data", plugin: "kubernetes.io/host-path", from: "/data", mountedAt: ["main:/data (read-only)"] },
    { name: "conf", plugin: "kubernetes.io/configmap", problem: 'configmap "c" not found', mountedAt: ["main:/conf"] },
    { name: "new", plugin: "kubernetes.io/host-path", from: "/new", note: "it would be made", mountedAt: [] },
  ],
  images: [
    { image: "web:1", pullPolicy: "IfNotPresent", state: "present", sizeBytes: 4_200_000 },
    { image: "gone:1", pullPolicy: "Never", state: "missing", problem: "is not present with pull policy of Never" },
    { image: "model:1", pullPolicy: "Always", state: "to be pulled", volume: "m" },
  ],
};
const answer: ApplyAnswer = {
  at,
  runtimeSeenAt: at - 12_000,
  file: { path: "/etc/kubernetes/manifests/web.yaml", isRead: true },
  outcome: "admitted",
  problems: [],
  leftOut: {},
  pod,
};

const objection = { handler: "node fit", reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" };
for (const { name, changed, says, without } of [
  {
    name: "a pod that would be admitted",
    changed: {},
    says: [
      "default/web-vm would be admitted\nas /etc/kubernetes/manifests/web.yaml\n",
      "Class: Burstable, priority 0\n",
      'Filled in:\n  spec.restartPolicy  "Always"\n',
      "Resources:\n  cpu  the node has 2  promised 500m  this pod asks 250m\n",
      "Cgroup /kubepods/burstable/podu1:\n  cpu.weight  10\n  memory.max  134217728\n",
      "main  cpu shares 256  cpu quota 50000 of 100000 us  memory limit 128Mi  oom score 992  cpus 2-3\n",
      "from /data  main:/data (read-only)\n",
      'MISSING                  configmap "c" not found\n',
      "it would be made\n",
      "web:1    present       4.2 MB  IfNotPresent\n",
      "is not present with pull policy of Never\n",
      "Always, volume m\n",
      "Looked at 3 s ago; what runs was listed 15 s ago. Things may change between look and act.\n",
    ],
    without: ["Problems", "Host ports", "Not shown", "decided by", "NOT ENOUGH"],
  },
  {
    name: "one that would be refused, and by whom",
    changed: {
      outcome: "refused",
      pod: {
        ...pod,
        verdict: { type: "rejected", reason: objection.reason, message: objection.message },
        objections: [objection, { handler: "host ports", reason: "NodePorts", message: "no free ports" }],
        sums: [{ resource: "cpu", has: "2", promised: "2", asks: "1", isEnough: false }],
        hostPorts: [{ port: 80, protocol: "TCP", ip: "0.0.0.0", holder: "default/other" }],
      },
    },
    says: [
      "default/web-vm would be refused\n",
      "  OutOfcpu: Node didn't have enough resource: cpu\n",
      "decided by node fit\n",
      "also against it: host ports  NodePorts: no free ports\n",
      "this pod asks 1  NOT ENOUGH\n",
      "Host ports that others have:\n  TCP 0.0.0.0:80  default/other\n",
    ],
    without: [],
  },
  {
    name: "one for which others would have to go, in place of an older version",
    changed: {
      pod: {
        ...pod,
        presence: "replaces",
        isCritical: true,
        verdict: { type: "admitted", preempts: ["default/guest"], forWantOf: "cpu" },
        areSumsBinding: false,
      },
    },
    says: [
      "the pod of this file ends first",
      "there is not enough cpu; these would have to go: default/guest\n",
      "critical: others may have to go",
      "Resources (without an API server no pod is refused because they are short):",
    ],
    without: [],
  },
  {
    name: "one that would wait on a node that knows little",
    changed: {
      outcome: "waits",
      runtimeSeenAt: undefined,
      pod: { ...pod, verdict: { type: "waits", waitsFor: "the Node" }, cgroup: undefined, namesakes: ["u9"] },
    },
    says: [
      "would wait\n",
      "waits for the Node\n",
      "what runs is not known yet",
      "a static pod of this name is there: u9",
    ],
    without: ["Cgroup"],
  },
  {
    name: "one that is wrong, with where",
    changed: {
      outcome: "invalid",
      pod: undefined,
      file: { path: "/web.yaml", isRead: false },
      leftOut: { problems: 7 },
      problems: [
        {
          severity: "error",
          field: "spec.containers[0].image",
          message: "Required value",
          position: { line: 7, column: 5 },
        },
      ],
    },
    says: [
      "This manifest is no valid pod, nothing would happen\n",
      "this node reads no manifests (staticPodPath is not set)",
      "Problems:\n  error  spec.containers[0].image: Required value (line 7, column 5)\n",
      "Not shown: 7 more of problems.\n",
    ],
    without: ["Class"],
  },
] as const satisfies readonly {
  name: string;
  changed: object;
  says: readonly string[];
  without: readonly string[];
}[]) {
  test(`the text of ${name}`, () => {
    const text = applyText({ ...answer, ...(changed as Partial<ApplyAnswer>) }, at + 3_000);
    for (const piece of says) assert.ok(text.includes(piece), `${piece}\n---\n${text}`);
    for (const piece of without) assert.ok(!text.includes(piece), `${piece}\n---\n${text}`);
  });
}

let directory: string;
let told = "";
let answered: object = answer;
const server = createServer(async (request, response) => {
  told = `${request.method} ${request.url} `;
  for await (const chunk of request.setEncoding("utf8")) told += chunk;
  response.end(JSON.stringify(answered));
});
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-apply-"));
  await writeFile(join(directory, "web.yaml"), "kind: Pod\n");
  await new Promise<void>((resolve) => server.listen(join(directory, "nodelet.sock"), resolve));
});
after(async () => {
  server.close();
  await rm(directory, { recursive: true });
});

async function run(...words: readonly string[]) {
  const recorded = recordIo("/");
  const code = await applyCommand([...words, `--root-dir=${directory}`], recorded.io);
  return { code, out: recorded.stdout(), err: recorded.stderr() };
}

for (const [outcome, code] of [
  ["admitted", 0],
  ["unchanged", 0],
  ["refused", 1],
  ["invalid", 1],
  ["no pod", 1],
  ["waits", 3],
] as const) {
  test(`a pod that is ${outcome}: exit code ${code}, as text, JSON and YAML`, async () => {
    answered = { ...answer, outcome };
    const file = join(directory, "web.yaml");
    assert.equal((await run("--dry-run", file)).code, code);
    assert.equal(told, "POST /plans/apply?name=web.yaml kind: Pod\n");
    const json = await run("--dry-run", file, "-o", "json");
    assert.deepEqual(
      [json.code, JSON.parse(json.out).kind, JSON.parse(json.out).outcome],
      [code, "ManifestPlan", outcome],
    );
    const yaml = await run("--dry-run", file, "-o", "yaml");
    assert.equal(yaml.code, code);
    assert.match(yaml.out, new RegExp(`^kind: ManifestPlan[^]*^outcome: ${outcome}$`, "m"));
  });
}

for (const { words, code, says } of [
  { words: ["web.yaml"], code: 2, says: /put the file into the directory of manifests .*, or use kubectl apply/ },
  { words: ["--dry-run"], code: 2, says: /MANIFEST is missing/ },
  { words: ["--dry-run", "/no/such/file"], code: 1, says: /there is no file \/no\/such\/file/ },
  { words: ["--dry-run", "/"], code: 1, says: /is a directory, not a file/ },
  { words: ["--dry-run", "/dev/zero"], code: 1, says: /is not a file/ },
]) {
  test(`nodelet apply ${words.join(" ")}: refused in a sentence`, async () => {
    const { code: found, err } = await run(...words);
    assert.equal(found, code, err);
    assert.match(err, says);
  });
}
