import type { ConfigMap, Container, PodSpec } from "../../src/ground/model/index.ts";
import type { BadPorts } from "./bad-server.ts";

/** A pod that an unprivileged user could make, to harm the agent or the pods beside it. */
export interface HostilePod {
  readonly name: string;
  /** What it used to do, or would do without a bound. */
  readonly tries: string;
  readonly spec: Partial<PodSpec>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Comes before the pod. */
  readonly configMap?: ConfigMap;
  /** An API server would refuse it; it comes as a manifest. */
  readonly isStatic?: boolean;
  /** It hurts only when its sandbox dies. */
  readonly losesSandbox?: boolean;
  /** Directories on the host that stop answering before it comes, and answer again before it goes. */
  readonly hungDirectories?: readonly string[];
  /** Somebody reads its log meanwhile. */
  readonly hasReaders?: boolean;
}

export interface HostileKit {
  readonly image: string;
  /** Servers on the host that answer as badly as they can. */
  readonly bad: BadPorts;
  /** Where directories that hang may be. */
  readonly directory: string;
}

const forever = "trap 'exit 0' TERM; sleep 1d & wait";
const often = { periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 1_000 } as const;
const run = (script: string) => ({ exec: { command: ["sh", "-c", script] } });

export function hostilePods({ image, bad: badPorts, directory }: HostileKit): readonly HostilePod[] {
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
  const bad = (path: string) => ({ httpGet: { host: "127.0.0.1", port: badPorts.http, path } });
  const badHttp2 = (path: string) => ({ httpGet: { ...bad(path).httpGet, scheme: "HTTPS", port: badPorts.http2 } });
  const opened = "$(".repeat(400_000);
  return [
    {
      name: "hook-output",
      tries: "quotes megabytes of a failed hook into messages, ledger, status and state file",
      spec: { containers: [shell(forever, { lifecycle: { postStart: run("head -c 15000000 /dev/zero; exit 1") } })] },
    },
    {
      name: "stop-hook-output",
      tries: "the same while it stops",
      spec: { containers: [shell(forever, { lifecycle: { preStop: run("head -c 15000000 /dev/zero; exit 1") } })] },
    },
    {
      name: "hook-answer",
      tries: "reads an answer to a hook without end, and a head of a megabyte",
      spec: { containers: [shell(forever, { lifecycle: { postStart: bad("/endless"), preStop: bad("/headers") } })] },
    },
    {
      name: "message-fifo",
      tries: "waits for ever for the termination message of a named pipe",
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
      tries: "reads five megabytes of termination message",
      spec: { containers: [shell("head -c 5000000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 1")] },
    },
    {
      name: "message-from-log",
      tries: "reads the logs of many ended containers at each status",
      spec: {
        containers: many(6, "head -c 3000000 /dev/zero | tr '\\0' x; sleep 1; exit 1", {
          terminationMessagePolicy: "FallbackToLogsOnError",
        }),
      },
    },
    {
      name: "expansion",
      tries: "looks for the end of 400,000 openings at each probe",
      spec: { containers: [shell(forever, { livenessProbe: { exec: { command: ["true", opened] }, ...often } })] },
    },
    {
      name: "expansion-in-env",
      tries: "the same in environment and arguments",
      spec: { containers: [shell(forever, { env: [{ name: "A", value: opened }], args: [opened.slice(0, 400_000)] })] },
    },
    {
      name: "gate-and-crash",
      tries: "status and its echo chase each other",
      spec: { readinessGates: [{ conditionType: "never.example/true" }], containers: [shell("exit 1")] },
    },
    {
      name: "gate-and-no-image",
      tries: "the same while the image is missing",
      spec: {
        readinessGates: [{ conditionType: "never.example/true" }],
        containers: [{ name: "main", image: "localhost/none:1", imagePullPolicy: "Never" }],
      },
    },
    {
      name: "hung-execs",
      tries: "probes of one pod take the turns of all",
      spec: { containers: many(12, forever, { readinessProbe: { ...run("sleep 1d"), ...often } }) },
    },
    {
      name: "loud-exec",
      tries: "reads megabytes of a probe's output",
      spec: { containers: [shell(forever, { readinessProbe: { ...run("head -c 10000000 /dev/zero"), ...often } })] },
    },
    {
      name: "forking-exec",
      tries: "probes that leave processes behind hold their output open",
      spec: {
        containers: [shell(forever, { readinessProbe: { ...run("for i in $(seq 50); do sleep 2 & done"), ...often } })],
      },
    },
    {
      name: "lost-names",
      tries: "lookups that nobody answers queue up before those of others",
      spec: {
        containers: many(6, forever, {
          readinessProbe: { httpGet: { host: "no.such.host.invalid", port: 80 }, ...often },
          livenessProbe: { tcpSocket: { host: "nor.this.one.invalid", port: 80 }, ...often },
        }),
      },
    },
    {
      name: "long-path",
      tries: "takes a path of 600 kB apart at each probe",
      spec: {
        containers: [
          shell(forever, {
            readinessProbe: {
              httpGet: { host: "127.0.0.1", port: badPorts.http, path: `/${"ä%".repeat(300_000)}` },
              ...often,
            },
          }),
        ],
      },
    },
    {
      name: "endless-answer",
      tries: "reads answers of probes without end, silent ones, and heads of a megabyte",
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
      tries: "names that are not UTF-8 are not found again: not counted, never removed",
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
      tries: "a descriptor for each level",
      spec: {
        ...emptyDir,
        containers: [
          shell(`cd /v; ${tower("d", 1_000, 10)}; ${forever}`, {
            volumeMounts: [scratch],
          }),
        ],
      },
    },
    {
      name: "many-files",
      tries: "one walk holds up the limits of all pods",
      spec: {
        ...emptyDir,
        containers: [shell(`cd /v; seq 1 200000 | xargs touch; ${forever}`, { volumeMounts: [scratch] })],
      },
    },
    {
      name: "full-memory",
      tries: "frees hundreds of megabytes on the event loop",
      spec: {
        volumes: [{ name: "v", emptyDir: { medium: "Memory" } }],
        containers: [shell(`dd if=/dev/zero of=/v/f bs=1M count=400; ${forever}`, { volumeMounts: [scratch] })],
      },
    },
    {
      name: "lost-sandbox",
      tries: "asks the runtime again and again without rest",
      losesSandbox: true,
      spec: {
        restartPolicy: "Never",
        initContainers: [{ ...shell("true"), name: "first" }],
        containers: [{ name: "main", image: "localhost/none:1", imagePullPolicy: "Never" }],
      },
    },
    {
      name: "wrong-number",
      tries: "an exception in admission ends the agent",
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
      tries: "lines that are longer than any buffer",
      hasReaders: true,
      spec: {
        containers: [shell("while :; do head -c 300000 /dev/zero | tr '\\0' x; echo; sleep 0.3; done")],
      },
    },
    {
      name: "no-line-ends",
      tries: "a line without end",
      hasReaders: true,
      spec: { containers: [shell("while :; do head -c 300000 /dev/zero | tr '\\0' x; sleep 0.3; done")] },
    },
    {
      name: "many-lines",
      tries: "more lines than a reader takes",
      hasReaders: true,
      spec: { containers: [shell("while :; do seq 1 20000; sleep 0.3; done")] },
    },
    {
      name: "heavy-spec",
      tries: "a definition of a megabyte, copied and compared at each change",
      annotations: { "bench.example/weight": "x".repeat(200_000) },
      spec: {
        containers: [
          shell(forever, {
            env: Array.from({ length: 2_000 }, (_, index) => ({ name: `V${index}`, value: "y".repeat(400) })),
          }),
        ],
      },
    },
    {
      name: "crowd-of-crashes",
      tries: "a status for each of many crashes",
      spec: { containers: many(10, "exit 1", {}) },
    },
    {
      name: "many-descriptors",
      tries: "open files by the ten thousand in each of twenty processes, listed whenever metrics are read",
      spec: {
        containers: [
          shell(
            'i=3; while [ $i -lt 10000 ]; do eval "exec $i</dev/null"; i=$((i+1)); done; ' +
              `n=0; while [ $n -lt 20 ]; do sleep 1d & n=$((n+1)); done; ${forever}`,
          ),
        ],
      },
    },
    {
      name: "many-processes",
      tries: "two thousand processes, listed whenever metrics are read",
      spec: {
        containers: [shell(`n=0; while [ $n -lt 2000 ]; do sleep 1d & n=$((n+1)); done; ${forever}`)],
      },
    },
    {
      name: "deep-long-names",
      tries: "directories whose names in bytes are too long to be moved up for removal",
      spec: {
        ...emptyDir,
        containers: [shell(`cd /v; ${tower("あ".repeat(85), 14, 12)}; ${forever}`, { volumeMounts: [scratch] })],
      },
    },
    {
      name: "hung-volume",
      tries: "each look at a file server that is dead holds one of a few threads",
      hungDirectories: [0, 1, 2, 3, 4, 5].map((index) => `${directory}/hung-${index}`),
      spec: {
        securityContext: { fsGroup: 1234 },
        volumes: [0, 1, 2, 3, 4, 5].map((index) => ({
          name: `h${index}`,
          hostPath: {
            path: `${directory}/hung-${index}`,
            type: index % 2 === 0 ? ("Directory" as const) : ("" as const),
          },
        })),
        containers: [
          shell(forever, {
            volumeMounts: [0, 1, 2, 3, 4, 5].map((index) => ({
              name: `h${index}`,
              mountPath: `/h${index}`,
              subPath: "below",
            })),
          }),
        ],
      },
    },
    {
      name: "http2-answers",
      tries: "connections that stay behind after what can't be sent; heads, pushes and bodies without end",
      spec: {
        containers: ["/endless", "/silent", "/headers", "/informational", "/pushes", "/redirect"].map(
          (path, index) => ({
            ...shell(forever, {
              readinessProbe: { ...badHttp2(path), ...often },
              livenessProbe: {
                httpGet: {
                  ...badHttp2("/well").httpGet,
                  httpHeaders: ["a", "b"].map((value) => ({ name: "Authorization", value })),
                },
                ...often,
              },
            }),
            name: `c${index}`,
          }),
        ),
      },
    },
    {
      name: "no-protocol",
      tries: "answers of probes that are no answers: a byte at a time, zeros without end, redirects without end",
      spec: {
        containers: [
          shell("while :; do nc -l -p 5005 < /dev/zero > /dev/null; done", {
            readinessProbe: { grpc: { port: 5005 }, ...often },
            livenessProbe: { httpGet: { port: 5005 }, ...often },
          }),
          {
            ...shell(forever, {
              readinessProbe: { httpGet: { host: "127.0.0.1", port: badPorts.drip }, ...often },
              livenessProbe: { ...bad("/redirect"), ...often },
              startupProbe: { httpGet: { host: "127.0.0.1", port: badPorts.drip, scheme: "HTTPS" }, ...often },
            }),
            name: "drip",
          },
        ],
      },
    },
    {
      name: "growing-env",
      tries: "variables that repeat each other fill the memory",
      spec: {
        containers: [
          shell(forever, {
            env: [
              { name: "A", value: "x".repeat(100_000) },
              ...Array.from({ length: 82 }, (_, index) => ({ name: `B${index}`, value: "$(A)" })),
            ],
          }),
        ],
      },
    },
    {
      name: "many-references",
      tries: "takes 250,000 references apart, one after the other",
      spec: {
        containers: [
          shell(forever, {
            env: [
              { name: "A", value: "x" },
              { name: "B", value: "$(A)$$".repeat(160_000) },
            ],
          }),
        ],
      },
    },
    {
      name: "annotation-in-env",
      tries: "one annotation of 200 kB, a hundred times in the environment and in files",
      annotations: { weight: "x".repeat(200_000) },
      spec: {
        volumes: [
          {
            name: "v",
            downwardAPI: {
              items: Array.from({ length: 100 }, (_, index) => ({
                path: `f${index}`,
                fieldRef: { fieldPath: "metadata.annotations['weight']" },
              })),
            },
          },
        ],
        containers: [
          shell(forever, {
            volumeMounts: [scratch],
            env: Array.from({ length: 100 }, (_, index) => ({
              name: `W${index}`,
              valueFrom: { fieldRef: { fieldPath: "metadata.annotations['weight']" } },
            })),
          }),
        ],
      },
    },
    {
      name: "many-keys",
      tries: "a config map of 5,000 files, in ten volumes and in the environment",
      configMap: {
        metadata: { name: "many-keys" },
        data: Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, "v".repeat(100)])),
      },
      spec: {
        volumes: Array.from({ length: 10 }, (_, index) => ({ name: `v${index}`, configMap: { name: "many-keys" } })),
        containers: [
          shell(forever, {
            volumeMounts: Array.from({ length: 10 }, (_, index) => ({ name: `v${index}`, mountPath: `/v${index}` })),
            envFrom: [{ configMapRef: { name: "many-keys" } }],
          }),
        ],
      },
    },
    {
      name: "many-volumes",
      tries: "500 volumes, each made, measured and removed",
      spec: {
        volumes: Array.from({ length: 500 }, (_, index) => ({ name: `v${index}`, emptyDir: { sizeLimit: "1Mi" } })),
        containers: [shell(forever)],
      },
    },
    {
      name: "many-containers",
      tries: "a status of a hundred containers that wait, and 2,000 readiness gates",
      spec: {
        readinessGates: Array.from({ length: 2_000 }, (_, index) => ({
          conditionType: `bench.example/${"g".repeat(50)}${index}`,
        })),
        containers: Array.from({ length: 100 }, (_, index) => ({
          name: `c${index}`,
          image: `localhost/${"n".repeat(200)}:${index}`,
          imagePullPolicy: "Never",
        })),
      },
    },
    {
      name: "long-image",
      tries: "an image's name of 500 kB in status, events and messages",
      spec: { containers: [{ name: "main", image: `localhost/${"n".repeat(500_000)}:1`, imagePullPolicy: "Always" }] },
    },
    {
      name: "huge-number",
      tries: "a quantity of 200,000 digits is computed with",
      isStatic: true,
      spec: {
        containers: [shell(forever, { resources: { requests: { memory: `${"9".repeat(200_000)}x` } } })],
      },
    },
    {
      name: "env-file",
      tries: "reads variables from a named pipe, and from a line of blanks that a pattern is matched against",
      spec: {
        volumes: [{ name: "v", emptyDir: {} }],
        initContainers: [
          {
            ...shell(
              `mkfifo /v/pipe; (echo 'A = a'; head -c 60000 /dev/zero | tr '\\0' ' '; echo 'b') | tr -d '\\n' > /v/blanks`,
              { volumeMounts: [scratch] },
            ),
            name: "make",
          },
        ],
        containers: ["pipe", "blanks"].map((path) => ({
          ...shell(forever, {
            env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path, key: "A" } } }],
          }),
          name: path,
        })),
      },
    },
    {
      name: "slow-stop",
      tries: "a stop that waits for a hook without an answer and a process that does not listen",
      spec: { containers: many(5, "trap '' TERM; sleep 1d", { lifecycle: { preStop: bad("/silent") } }) },
    },
  ];
}

/** A script that makes directories in each other, more than a path can name: towers are built and put into the next. */
function tower(name: string, height: number, floors: number): string {
  return [
    `p="${name}"; i=1; while [ $i -lt ${height} ]; do p="$p/${name}"; i=$((i+1)); done`,
    `mkdir -p "t/$p"; j=1; while [ $j -lt ${floors} ]; do mkdir -p "n/$p"; mv t "n/$p/"; mv n t; j=$((j+1)); done`,
  ].join("; ");
}
