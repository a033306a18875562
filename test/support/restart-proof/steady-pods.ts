import type { Affinity, Container, PodSpec, Probe } from "../../../src/ground/model/index.ts";
import { nodeName } from "./control-plane.ts";

/** Who makes the pod. Without controllers, the proof makes what a controller would. */
export type Maker = "manifest" | "administrator" | "DaemonSet" | "Deployment" | "StatefulSet";

/** A pod that must live through everything as if nothing had happened. */
export interface SteadyPod {
  readonly name: string;
  readonly maker: Maker;
  readonly spec: Partial<PodSpec>;
  /** What it comes to, and stays. */
  readonly becomes: "ready" | "unready" | "succeeded";
}

export interface PodKit {
  readonly image: string;
  readonly healthPort: number;
  /** A port of the host that nobody uses. */
  readonly hostPort: () => Promise<number>;
  readonly hostDirectory: string;
}

/** Given to the agent as a flag. */
export const flagLabels = { "proof.example/rack": "r7" } as const;
/** Given to the Node by an administrator: the agent learns them from the API only. */
export const laterLabels = { "proof.example/pool": "blue", "proof.example/rank": "5" } as const;
export const gate = "proof.example/open";

// One failure counts, so that none can hide; the time is long, because the machine may be busy.
const patient = { periodSeconds: 3, timeoutSeconds: 30, failureThreshold: 1 } as const;
const run = (script: string) => ({ exec: { command: ["sh", "-c", script] } });
const exec = (script: string): Probe => ({ ...run(script), ...patient });
const http = (port: number | string): Probe => ({ httpGet: { path: "/index.html", port }, ...patient });
const tcp = (port: number): Probe => ({ tcpSocket: { port }, ...patient });
const startup = (probe: Probe): Probe => ({ ...probe, periodSeconds: 1, failureThreshold: 60 });
const waitForTerm = "trap 'exit 0' TERM; sleep 1d & wait";
const cpuAndMemory = (cpu: string, memory: string) => ({ cpu, memory });

/** `count` pods of every kind in turn. */
export async function steadyPods(count: number, kit: PodKit): Promise<readonly SteadyPod[]> {
  const pods: SteadyPod[] = [];
  for (let index = 0; index < count; index++) {
    const kind = kinds[index % kinds.length] as Kind;
    pods.push({
      becomes: "ready",
      ...(await kind.make(kit)),
      name: `${kind.name}-${Math.floor(index / kinds.length)}`,
    });
  }
  return pods;
}

interface Kind {
  readonly name: string;
  make(kit: PodKit): Promise<Pick<SteadyPod, "maker" | "spec"> & Partial<Pick<SteadyPod, "becomes">>>;
}

const kinds: readonly Kind[] = [
  {
    name: "daemon",
    make: async (kit) => ({
      maker: "DaemonSet",
      spec: {
        containers: [web(kit, 8080, { readinessProbe: http(8080), livenessProbe: http(8080) })],
        tolerations: [{ operator: "Exists" }],
      },
    }),
  },
  {
    name: "selected",
    make: async (kit) => ({
      maker: "Deployment",
      spec: { nodeSelector: laterLabels, containers: [server(kit, "main", { readinessProbe: exec("true") })] },
    }),
  },
  {
    name: "ranked",
    make: async (kit) => {
      const resources = { requests: cpuAndMemory("20m", "16Mi"), limits: cpuAndMemory("200m", "64Mi") };
      const probes = { readinessProbe: tcp(8080), livenessProbe: http("web"), startupProbe: startup(exec("true")) };
      return {
        maker: "Deployment",
        spec: { affinity: demanding, containers: [web(kit, 8080, { resources, ...probes })] },
      };
    },
  },
  {
    name: "static",
    make: async (kit) => ({
      maker: "manifest",
      spec: {
        nodeSelector: { ...flagLabels, ...laterLabels },
        containers: [server(kit, "main", { readinessProbe: exec("true") })],
      },
    }),
  },
  {
    name: "gated",
    make: async (kit) => ({
      maker: "administrator",
      spec: {
        nodeSelector: { "proof.example/pool": "blue" },
        readinessGates: [{ conditionType: gate }],
        containers: [web(kit, 8080, { readinessProbe: tcp(8080) })],
      },
    }),
  },
  {
    name: "hosted",
    make: async (kit) => {
      const port = await kit.hostPort();
      const readinessProbe: Probe = { grpc: { port: kit.healthPort, service: "proof" }, ...patient };
      const probes = { readinessProbe, livenessProbe: http(port), startupProbe: startup(tcp(port)) };
      return {
        maker: "DaemonSet",
        spec: { hostNetwork: true, tolerations: [{ operator: "Exists" }], containers: [web(kit, port, probes)] },
      };
    },
  },
  {
    name: "guaranteed",
    make: async (kit) => {
      const all = cpuAndMemory("50m", "32Mi");
      const main = server(kit, "main", { resources: { requests: all, limits: all }, livenessProbe: exec("true") });
      return { maker: "administrator", spec: { affinity: demanding, containers: [main] } };
    },
  },
  {
    name: "aided",
    make: async (kit) => ({
      maker: "StatefulSet",
      spec: {
        initContainers: [
          shell(kit, "setup", "true", { resources: { requests: { cpu: "10m" } } }),
          server(kit, "side", { restartPolicy: "Always", startupProbe: startup(exec("sleep 0.1")) }),
        ],
        containers: [
          server(kit, "main", { lifecycle: { postStart: run("true"), preStop: run("true") } }),
          server(kit, "second", { readinessProbe: exec("true"), resources: { requests: { cpu: "15m" } } }),
        ],
      },
    }),
  },
  {
    name: "volumes",
    make: async (kit) => ({
      maker: "Deployment",
      spec: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        automountServiceAccountToken: true,
        securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000 },
        volumes: [
          { name: "disk", emptyDir: {} },
          { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
          { name: "settings", configMap: { name: "proof" } },
          { name: "secret", secret: { secretName: "proof" } },
          { name: "host", hostPath: { path: kit.hostDirectory } },
          { name: "about", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
        ],
        containers: [
          // What it once wrote into its volumes must stay there.
          shell(kit, "main", `touch /disk/mark /sub/mark /memory/mark; ${waitForTerm}`, {
            env: [{ name: "WORD", valueFrom: { configMapKeyRef: { name: "proof", key: "word" } } }],
            readinessProbe: exec(
              'test "$WORD" = hello -a -s /settings/word -a -s /secret/word -a -s /about/name && ' +
                "test -e /disk/mark -a -e /disk/below/mark -a -e /sub/mark -a -e /memory/mark && " +
                "test -s /var/run/secrets/kubernetes.io/serviceaccount/token",
            ),
            volumeMounts: [
              { name: "disk", mountPath: "/disk" },
              { name: "disk", mountPath: "/sub", subPath: "below" },
              { name: "memory", mountPath: "/memory" },
              { name: "settings", mountPath: "/settings" },
              { name: "secret", mountPath: "/secret" },
              { name: "host", mountPath: "/host" },
              { name: "about", mountPath: "/about" },
            ],
          }),
        ],
      },
    }),
  },
  {
    name: "whole",
    make: async (kit) => ({
      maker: "administrator",
      spec: {
        resources: { requests: cpuAndMemory("30m", "32Mi"), limits: cpuAndMemory("300m", "64Mi") },
        containers: [server(kit, "main"), server(kit, "second", { livenessProbe: exec("true") })],
      },
    }),
  },
  {
    name: "port",
    make: async (kit) => {
      const hostPort = await kit.hostPort();
      const ports = [{ name: "web", containerPort: 8080, hostPort, hostIP: "127.0.0.1" }];
      const resources = { requests: { cpu: "25m" } };
      return {
        maker: "administrator",
        spec: { containers: [web(kit, 8080, { ports, resources, readinessProbe: http("web") })] },
      };
    },
  },
  {
    name: "static-guaranteed",
    make: async (kit) => {
      const all = cpuAndMemory("40m", "32Mi");
      const main = server(kit, "main", { resources: { requests: all, limits: all } });
      return { maker: "manifest", spec: { affinity: demanding, hostNetwork: true, containers: [main] } };
    },
  },
  {
    name: "unready",
    make: async (kit) => ({
      maker: "administrator",
      becomes: "unready",
      spec: {
        nodeSelector: { "proof.example/rank": "5" },
        containers: [server(kit, "main", { readinessProbe: exec("false") })],
      },
    }),
  },
  {
    name: "over",
    make: async (kit) => ({
      maker: "administrator",
      becomes: "succeeded",
      spec: {
        restartPolicy: "Never",
        affinity: demanding,
        containers: [shell(kit, "main", "true"), shell(kit, "second", "sleep 0.2")],
      },
    }),
  },
  {
    name: "shared",
    make: async (kit) => ({
      maker: "Deployment",
      spec: {
        nodeSelector: { "proof.example/pool": "blue" },
        shareProcessNamespace: true,
        readinessGates: [{ conditionType: gate }],
        containers: [
          server(kit, "main", { resources: { requests: cpuAndMemory("10m", "16Mi"), limits: { memory: "32Mi" } } }),
          server(kit, "second", { startupProbe: startup(exec("true")), livenessProbe: exec("true") }),
        ],
      },
    }),
  },
];

/** All operators of node affinity, by labels that the agent knows by itself and by labels that only the Node has. */
const demanding: Affinity = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [
        {
          matchFields: [{ key: "metadata.name", operator: "In", values: [nodeName] }],
          matchExpressions: [
            { key: "proof.example/rank", operator: "Gt", values: ["3"] },
            { key: "proof.example/rank", operator: "Lt", values: ["9"] },
            { key: "proof.example/pool", operator: "In", values: ["green", "blue"] },
            { key: "proof.example/rack", operator: "NotIn", values: ["r8"] },
            { key: "kubernetes.io/hostname", operator: "Exists" },
            { key: "proof.example/absent", operator: "DoesNotExist" },
          ],
        },
      ],
    },
  },
};

/** As the DaemonSet controller binds its pods to a node. */
export const byNodeName: Affinity = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [nodeName] }] }],
    },
  },
};

function shell({ image }: PodKit, name: string, script: string, more: Partial<Container> = {}): Container {
  return { name, image, command: ["sh", "-c", script], ...more };
}

function server(kit: PodKit, name: string, more: Partial<Container> = {}): Container {
  return shell(kit, name, waitForTerm, more);
}

function web(kit: PodKit, port: number, more: Partial<Container> = {}): Container {
  const script = `trap 'exit 0' TERM; mkdir -p /tmp/w; touch /tmp/w/index.html; httpd -p ${port} -h /tmp/w; sleep 1d & wait`;
  return shell(kit, "main", script, { ports: [{ name: "web", containerPort: port }], ...more });
}
