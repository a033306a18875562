import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SourceEars, temporaryDirectory } from "../../test/support/pod-source.ts";
import { TaskScope } from "../base/index.ts";
import { isError } from "../model/index.ts";
import { FileSource } from "./file-source.ts";

/** A manifest with something of everything, as an object to spoil. */
function rich(name: string): Record<string, unknown> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: name }, annotations: { note: "x" } },
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 5,
      dnsPolicy: "Default",
      hostNetwork: true,
      securityContext: { runAsUser: 1000, sysctls: [] },
      tolerations: [{ key: "a", operator: "Exists" }],
      volumes: [
        { name: "data", emptyDir: { sizeLimit: "1Gi" } },
        { name: "etc", hostPath: { path: "/etc", type: "Directory" } },
      ],
      initContainers: [{ name: "init", image: "busybox:1", command: ["true"] }],
      containers: [
        {
          name: "main",
          image: "busybox:1",
          args: ["-c", "sleep"],
          env: [
            { name: "A", value: "b" },
            { name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          ],
          ports: [{ name: "web", containerPort: 8080 }],
          resources: { limits: { cpu: "1", memory: "64Mi" }, requests: { cpu: "100m" } },
          volumeMounts: [{ name: "data", mountPath: "/data" }],
          livenessProbe: { httpGet: { path: "/", port: "web" }, periodSeconds: 5 },
          lifecycle: { preStop: { exec: { command: ["sync"] } } },
          securityContext: { readOnlyRootFilesystem: true },
        },
      ],
    },
  };
}

/** Where to put which bad value, and the field that must then be named. */
const spoilers: readonly (readonly [path: string, value: unknown, field?: string])[] = [
  ["apiVersion", "v2"],
  ["kind", "Pood"],
  ["metadata.name", "Not_A_Name"],
  ["metadata.name", 17],
  ["metadata.name", ""],
  ["metadata.labels", ["a"]],
  ["metadata.labels.app", "a b", "metadata.labels[app]"],
  ["metadata.namespace", "Default"],
  ["spec", "nothing"],
  ["spec.restartPolicy", "Sometimes"],
  ["spec.terminationGracePeriodSeconds", "5"],
  ["spec.dnsPolicy", "None", "spec.dnsConfig"],
  ["spec.hostNetwork", "yes"],
  ["spec.serviceAccountName", "default"],
  ["spec.activeDeadlineSeconds", 0],
  ["spec.securityContext.runAsUser", -1],
  ["spec.securityContext.sysctls", [{ name: "net.core.x", value: "1" }], "spec.securityContext.sysctls[0].name"],
  ["spec.tolerations.0.operator", "Like", "spec.tolerations[0].operator"],
  ["spec.volumes", { data: {} }],
  ["spec.volumes.0.name", "etc", "spec.volumes[1].name"],
  ["spec.volumes.0.emptyDir.sizeLimit", "1Gib", "spec.volumes[0].emptyDir.sizeLimit"],
  ["spec.volumes.1.hostPath.path", "", "spec.volumes[1].hostPath.path"],
  ["spec.volumes.1.secret", { secretName: "s" }, "spec.volumes[1].secret"],
  ["spec.initContainers.0.name", "main", "spec.initContainers[0].name"],
  ["spec.initContainers.0.livenessProbe", { tcpSocket: { port: 1 } }, "spec.initContainers[0].livenessProbe"],
  ["spec.containers", []],
  ["spec.containers", null],
  ["spec.containers.0.image", "", "spec.containers[0].image"],
  ["spec.containers.0.image", ["busybox"], "spec.containers[0].image"],
  ["spec.containers.0.imagePullPolicy", "Daily", "spec.containers[0].imagePullPolicy"],
  ["spec.containers.0.args", "-c", "spec.containers[0].args"],
  ["spec.containers.0.env.0.name", "1A", "spec.containers[0].env[0].name"],
  [
    "spec.containers.0.env.1.valueFrom.fieldRef.fieldPath",
    "spec.x",
    "spec.containers[0].env[1].valueFrom.fieldRef.fieldPath",
  ],
  ["spec.containers.0.ports.0.containerPort", 99_999, "spec.containers[0].ports[0].containerPort"],
  ["spec.containers.0.ports.0.protocol", "HTTP", "spec.containers[0].ports[0].protocol"],
  ["spec.containers.0.resources.requests.cpu", "2", "spec.containers[0].resources.requests[cpu]"],
  ["spec.containers.0.resources.limits.memory", "lots", "spec.containers[0].resources.limits[memory]"],
  ["spec.containers.0.volumeMounts.0.name", "gone", "spec.containers[0].volumeMounts[0].name"],
  ["spec.containers.0.livenessProbe.exec", { command: ["x"] }, "spec.containers[0].livenessProbe.httpGet"],
  ["spec.containers.0.livenessProbe.periodSeconds", -1, "spec.containers[0].livenessProbe.periodSeconds"],
  ["spec.containers.0.lifecycle.preStop.exec.command", [], "spec.containers[0].lifecycle.preStop.exec.command"],
  ["spec.containers.0.securityContext.runAsUser", 2 ** 40, "spec.containers[0].securityContext.runAsUser"],
];

function put(target: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(".");
  let place: Record<string, unknown> = target;
  for (const key of keys.slice(0, -1)) place = place[key] as Record<string, unknown>;
  place[keys.at(-1) ?? ""] = value;
}

/** Numbers that look random and are the same in every run. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Damages the text itself: cuts, doubles, swaps or overwrites a piece of it. */
function damage(text: string, random: (below: number) => number): string {
  const at = random(text.length);
  const length = 1 + random(20);
  const piece = text.slice(at, at + length);
  const noise = ["\t", "{", "]", ": ", "\u0000", "&x ", "*y", "!!binary ", "'", "%", "- ", "\ud800"][random(12)] ?? "";
  switch (random(5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + text.slice(at + length);
    case 2:
      return text.slice(0, at) + piece + text.slice(at);
    case 3:
      return text.slice(0, at) + noise + text.slice(at);
    default:
      return text.slice(0, at) + noise + text.slice(at + length);
  }
}

test("200 spoilt manifests among good ones: the good pods go on, each bad one is named with field and reason", async () => {
  await using temporary = await temporaryDirectory();
  const dir = join(temporary.path, "manifests");
  mkdirSync(dir);
  const good = Array.from({ length: 10 }, (_, index) => `good-${index}`);
  for (const name of good) writeFileSync(join(dir, `${name}.json`), JSON.stringify(rich(name), undefined, 2));
  const ears = new SourceEars();
  await using scope = new TaskScope();
  const settings = {
    path: dir,
    checkFrequencyMs: 3_600_000,
    checkpointDirectory: join(temporary.path, "saved"),
    nodeName: "n",
    references: { prevent: true, allow: [] },
  } as const;
  scope.spawn("file source", (signal) => new FileSource(settings, ears.ports).run(signal));
  await ears.until("the good pods are there", () => ears.pods?.length === good.length);

  const random = pseudoRandom(20_260_101);
  const wantedField = new Map<string, string>();
  const damaged: string[] = [];
  for (let index = 0; index < 120; index++) {
    const [path, value, field = path] = spoilers[index % spoilers.length] ?? ["kind", "x"];
    const pod = rich(`spoilt-${index}`);
    put(pod, path, value);
    const file = join(dir, `spoilt-${index}.json`);
    wantedField.set(file, field);
    writeFileSync(file, JSON.stringify(pod, undefined, index % 3));
  }
  for (let index = 0; index < 80; index++) {
    const file = join(dir, `damaged-${index}`);
    damaged.push(file);
    writeFileSync(file, damage(JSON.stringify(rich(`damaged-${index}`), undefined, 1), random));
  }
  // The last by name of all files: when its pod is there, everything before it has been read.
  writeFileSync(join(dir, "zz-last.json"), JSON.stringify(rich("last")));
  await ears.until("the last pod is there", () => ears.pods?.includes("last-n") === true);
  await ears.until("every spoilt file is reported", () =>
    [...wantedField.keys()].every((file) => ears.problemsOf(file)),
  );

  for (const [file, field] of wantedField) {
    const problems = ears.reports.findLast((report) => report.file === file)?.problems.filter(isError) ?? [];
    const fields = problems.map((problem) => problem.field);
    assert.ok(fields.includes(field), `${file}: ${field} is not named, but ${fields.join(", ")}`);
    for (const problem of problems) assert.notEqual(problem.message, "", file);
  }
  let refused = 0;
  for (const file of damaged) {
    const errors = ears.reports.findLast((report) => report.file === file)?.problems.filter(isError) ?? [];
    if (errors.length > 0) refused++;
    assert.ok(
      errors.every(({ message }) => message.length > 5),
      file,
    );
  }
  // Some damage is harmless, such as a doubled space. Every file is either refused with a reason or has its pod.
  assert.equal(ears.pods?.length, good.length + 1 + damaged.length - refused);
  assert.ok(refused > 40, `${refused} of ${damaged.length} damaged files were refused`);
  for (const pods of ears.deliveries.slice(1)) {
    const names = new Set(pods.map(({ metadata }) => metadata.name));
    for (const name of good) assert.ok(names.has(`${name}-n`), `${name} was lost in a delivery`);
  }
  assert.equal(scope.signal.aborted, false, String(scope.signal.reason));
});
