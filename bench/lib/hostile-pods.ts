import type { Container, PodSpec } from "../../src/model/index.ts";

/** A pod that an unprivileged user could make, to harm the agent or the pods beside it. */
export interface HostilePod {
  readonly name: string;
  readonly spec: Partial<PodSpec>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** An API server would refuse it; it comes as a manifest. */
  readonly isStatic?: boolean;
  /** It hurts only when its sandbox dies. */
  readonly losesSandbox?: boolean;
}

export interface HostileKit {
  readonly image: string;
  /** A server on the host that answers as badly as it can: /endless, /headers, /silent. */
  readonly badPort: number;
}

const forever = "trap 'exit 0' TERM; sleep 1d & wait";
const often = { periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 1_000 } as const;
const run = (script: string) => ({ exec: { command: ["sh", "-c", script] } });

export function hostilePods({ image, badPort }: HostileKit): readonly HostilePod[] {
  const shell = (script: string, more: Partial<Container> = {}): Container => ({
    name: "main",
    image,
    command: ["sh", "-c", script],
    ...more,
  });
  const many = (count: number, script: string, more: Partial<Container>): Container[] =>
    Array.from({ length: count }, (_, index) => ({ ...shell(script, more), name: `c${index}` }));
  const scratch = { name: "v", mountPath: "/v" };
  const emptyDir = { volumes: [{ name: "v", emptyDir: { sizeLimit: "500Mi" } }] };
  const bad = (path: string) => ({ httpGet: { host: "127.0.0.1", port: badPort, path } });
  const opened = "$(".repeat(400_000);
  return [
    {
      name: "hook-output",
      spec: { containers: [shell(forever, { lifecycle: { postStart: run("head -c 15000000 /dev/zero; exit 1") } })] },
    },
    {
      name: "stop-hook-output",
      spec: { containers: [shell(forever, { lifecycle: { preStop: run("head -c 15000000 /dev/zero; exit 1") } })] },
    },
    {
      name: "hook-answer",
      spec: { containers: [shell(forever, { lifecycle: { postStart: bad("/endless"), preStop: bad("/headers") } })] },
    },
    {
      name: "message-fifo",
      spec: {
        volumes: [{ name: "v", emptyDir: {} }],
        initContainers: [{ ...shell("mkfifo /v/f", { volumeMounts: [scratch] }), name: "make" }],
        containers: [
          shell("sleep 1; exit 1", {
            volumeMounts: [{ name: "v", mountPath: "/dev/termination-log", subPath: "f" }],
          }),
        ],
      },
    },
    {
      name: "long-message",
      spec: { containers: [shell("head -c 5000000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 1")] },
    },
    {
      name: "message-from-log",
      spec: {
        containers: many(6, "head -c 3000000 /dev/zero | tr '\\0' x; sleep 1; exit 1", {
          terminationMessagePolicy: "FallbackToLogsOnError",
        }),
      },
    },
    {
      name: "expansion",
      spec: { containers: [shell(forever, { livenessProbe: { exec: { command: ["true", opened] }, ...often } })] },
    },
    {
      name: "expansion-in-env",
      spec: { containers: [shell(forever, { env: [{ name: "A", value: opened }], args: [opened.slice(0, 400_000)] })] },
    },
    {
      name: "gate-and-crash",
      spec: { readinessGates: [{ conditionType: "never.example/true" }], containers: [shell("exit 1")] },
    },
    {
      name: "gate-and-no-image",
      spec: {
        readinessGates: [{ conditionType: "never.example/true" }],
        containers: [{ name: "main", image: "localhost/none:1", imagePullPolicy: "Never" }],
      },
    },
    {
      name: "hung-execs",
      spec: { containers: many(12, forever, { readinessProbe: { ...run("sleep 1d"), ...often } }) },
    },
    {
      name: "loud-exec",
      spec: { containers: [shell(forever, { readinessProbe: { ...run("head -c 10000000 /dev/zero"), ...often } })] },
    },
    {
      name: "forking-exec",
      spec: {
        containers: [shell(forever, { readinessProbe: { ...run("for i in $(seq 50); do sleep 2 & done"), ...often } })],
      },
    },
    {
      name: "lost-names",
      spec: {
        containers: many(6, forever, {
          readinessProbe: { httpGet: { host: "no.such.host.invalid", port: 80 }, ...often },
          livenessProbe: { tcpSocket: { host: "nor.this.one.invalid", port: 80 }, ...often },
        }),
      },
    },
    {
      name: "long-path",
      spec: {
        containers: [
          shell(forever, {
            readinessProbe: {
              httpGet: { host: "127.0.0.1", port: badPort, path: `/${"ä%".repeat(300_000)}` },
              ...often,
            },
          }),
        ],
      },
    },
    {
      name: "endless-answer",
      spec: {
        containers: [
          shell(forever, {
            readinessProbe: { ...bad("/endless"), ...often },
            livenessProbe: { ...bad("/silent"), ...often },
            startupProbe: { ...bad("/headers"), ...often },
          }),
        ],
      },
    },
    {
      name: "odd-names",
      spec: {
        ...emptyDir,
        containers: [
          shell(
            `cd /v; d=$(printf 'r\\351sum\\351'); mkdir "$d"; touch "$d/$d" "$(printf 'a\\nb')"; head -c 1000000 /dev/zero > "$d/f"; ${forever}`,
            { volumeMounts: [scratch] },
          ),
        ],
      },
    },
    {
      name: "deep-tree",
      spec: {
        ...emptyDir,
        containers: [
          shell(`cd /v; i=0; while [ $i -lt 3000 ]; do mkdir d; cd d; i=$((i+1)); done; ${forever}`, {
            volumeMounts: [scratch],
          }),
        ],
      },
    },
    {
      name: "many-files",
      spec: {
        ...emptyDir,
        containers: [shell(`cd /v; seq 1 60000 | xargs touch; ${forever}`, { volumeMounts: [scratch] })],
      },
    },
    {
      name: "full-memory",
      spec: {
        volumes: [{ name: "v", emptyDir: { medium: "Memory" } }],
        containers: [shell(`dd if=/dev/zero of=/v/f bs=1M count=400; ${forever}`, { volumeMounts: [scratch] })],
      },
    },
    {
      name: "lost-sandbox",
      losesSandbox: true,
      spec: {
        restartPolicy: "Never",
        initContainers: [{ ...shell("true"), name: "first" }],
        containers: [{ name: "main", image: "localhost/none:1", imagePullPolicy: "Never" }],
      },
    },
    {
      name: "wrong-number",
      isStatic: true,
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: "bench.example/rank", operator: "Gt", values: ["abc"] }] },
              ],
            },
          },
        },
        containers: [shell(forever)],
      },
    },
    {
      name: "long-lines",
      spec: {
        containers: [shell("while :; do head -c 300000 /dev/zero | tr '\\0' x; echo; sleep 0.3; done")],
      },
    },
    {
      name: "no-line-ends",
      spec: { containers: [shell("while :; do head -c 300000 /dev/zero | tr '\\0' x; sleep 0.3; done")] },
    },
    {
      name: "many-lines",
      spec: { containers: [shell("while :; do seq 1 20000; sleep 0.3; done")] },
    },
    {
      name: "heavy-spec",
      annotations: { "bench.example/weight": "x".repeat(200_000) },
      spec: {
        containers: [
          shell(forever, {
            env: Array.from({ length: 2_000 }, (_, index) => ({ name: `V${index}`, value: "y".repeat(400) })),
          }),
        ],
      },
    },
    { name: "crowd-of-crashes", spec: { containers: many(10, "exit 1", {}) } },
  ];
}
