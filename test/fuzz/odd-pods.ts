import type { IdentifiedPod } from "../../src/ground/model/index.ts";
import { enginePod } from "../support/test-engine.ts";
import type { FuzzRandom } from "./fuzzing.ts";

/** What an API server takes of a request: no pod is larger. */
const largestPodBytes = 3 * 1024 * 1024;

/** A pod with a bit of everything, some of it spoilt: absent, of another type, far too large, or of no known word. */
export function oddPod(random: FuzzRandom, name: string): IdentifiedPod {
  for (;;) {
    const pod = structuredClone(richPod(random, name)) as unknown as Tree;
    for (let left = random.below(4); left > 0; left--) spoilSomewhere(pod["spec"] as Tree, random);
    // A thousand copies of a container that has a text of a hundred thousand characters are too much.
    if (JSON.stringify(pod).length <= largestPodBytes) return Object.freeze(pod) as unknown as IdentifiedPod;
  }
}

type Tree = Record<string, unknown>;

function richPod(random: FuzzRandom, name: string): IdentifiedPod {
  const probe = {
    ...random.pick<object>([
      { exec: { command: ["check"] } },
      { httpGet: { path: "/", port: random.pick<string | number>([80, "web", "absent", 0]) } },
      { tcpSocket: { port: 80 } },
      { grpc: { port: 80, service: "" } },
    ]),
    periodSeconds: random.pick([1, 10, 2 ** 31 - 1]),
    timeoutSeconds: 1,
    failureThreshold: 1,
    successThreshold: 1,
  };
  const hook = random.pick<object>([
    { exec: { command: ["hook"] } },
    { sleep: { seconds: random.below(100) } },
    { httpGet: { path: "/", port: "web", host: "127.0.0.1" } },
  ]);
  const container = {
    image: random.pick(["busybox:1", "absent:1", ""]),
    command: ["run", "$(A)", `${"$(".repeat(random.below(200))}`],
    env: [
      { name: "A", value: "$(B) $(A) $$(A)" },
      { name: "B", valueFrom: { fieldRef: { fieldPath: random.pick(["metadata.name", "status.podIP", "no.field"]) } } },
      {
        name: "C",
        valueFrom: { resourceFieldRef: { resource: random.pick(["limits.cpu", "requests.memory", "odd"]) } },
      },
    ],
    ports: [{ name: "web", containerPort: 80, hostPort: random.pick([0, 8080, 80]), protocol: "TCP" }],
    resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "1", memory: "1e9" } },
    livenessProbe: probe,
    readinessProbe: probe,
    startupProbe: probe,
    lifecycle: { postStart: hook, preStop: hook },
    volumeMounts: [{ name: "cache", mountPath: "/cache", subPath: random.pick(["", "a/b", "../up"]) }],
    securityContext: { runAsUser: 0, capabilities: { add: ["ALL"] }, seccompProfile: { type: "RuntimeDefault" } },
    terminationMessagePolicy: random.pick(["File", "FallbackToLogsOnError"]),
  };
  const named = (label: string, more: object = {}) => ({ name: label, ...container, ...more });
  const many = random.pick([1, 1, 1, 2, 20]);
  return enginePod(name, {
    restartPolicy: random.pick(["Always", "OnFailure", "Never"]),
    containers: Array.from({ length: many }, (_, index) => named(`c${index}`)),
    initContainers: [named("i0", { ...random.pick<object>([{}, { restartPolicy: "Always" }]) })],
    nodeSelector: random.pick<Record<string, string>>([{}, { zone: "a" }, { zone: "b" }]),
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                {
                  key: random.pick(["zone", "number"]),
                  operator: random.pick(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"]),
                  values: random.pick<string[]>([[], ["a"], ["7"], ["abc"], ["1e400"], ["-"], ["9".repeat(400)]]),
                },
              ],
            },
          ],
        },
      },
    },
    tolerations: [{ key: "a", operator: random.pick(["Exists", "Equal", "Gt", "Odd"]), value: "1" }],
    ...random.pick<object>([{}, { activeDeadlineSeconds: 5 }, { activeDeadlineSeconds: 2 ** 40 }]),
    terminationGracePeriodSeconds: random.pick([0, 1, 30, -1, 600]),
    securityContext: { sysctls: [{ name: random.pick(["kernel.shm_rmid_forced", "a/b.c"]), value: "1" }], fsGroup: 7 },
    readinessGates: random.pick([[], [{ conditionType: "example.com/gate" }]]),
    volumes: [{ name: "cache", emptyDir: {} }],
    hostNetwork: random.below(4) === 0,
    dnsPolicy: random.pick(["ClusterFirst", "None", "Odd"]),
    hostAliases: [{ ip: "127.0.0.9", hostnames: ["a"] }],
  } as unknown as IdentifiedPod["spec"]);
}

function spoilSomewhere(tree: Tree, random: FuzzRandom): void {
  const keys = Object.keys(tree);
  if (keys.length === 0) return;
  const key = random.pick(keys);
  const value = tree[key];
  const isBranch = typeof value === "object" && value !== null;
  if (isBranch && random.below(4) > 0) spoilSomewhere(value as Tree, random);
  else tree[key] = spoilt(value, random);
}

function spoilt(value: unknown, random: FuzzRandom): unknown {
  const choice = random.below(10);
  if (choice === 0) return undefined;
  if (choice === 1) return null;
  if (choice === 2) return random.text(random.pick([1, 10, 100_000]));
  if (choice === 3) return random.pick([0, -1, 2 ** 53, 1e308, Number.NaN]);
  if (choice === 4) return {};
  if (choice === 5) return [];
  if (choice === 6)
    return random.pick(["__proto__", "constructor", "\u0000", "\ud800", "../../etc", "$(".repeat(50_000)]);
  if (choice === 7 && Array.isArray(value)) return Array.from({ length: random.pick([100, 1_000]) }, () => value[0]);
  if (choice === 8 && Array.isArray(value)) return [...value, ...value];
  return typeof value === "string" ? value.repeat(random.below(1_000)) : [value];
}
