import type { PodSpec } from "../../src/ground/model/index.ts";

/** Pods of every kind that people look at, by name: some run, some wait, some fail. */
export function shownPods(images: { readonly busybox: string }): ReadonlyMap<string, Partial<PodSpec>> {
  const { busybox: image } = images;
  const sh = (script: string): string[] => ["sh", "-c", `trap 'exit 0' TERM; ${script}`];
  const sleep = sh("sleep 100000 & wait");
  return new Map<string, Partial<PodSpec>>([
    [
      "shop",
      {
        initContainers: [
          {
            name: "prepare",
            image,
            command: sh("sleep 0.4; echo ready > /cache/state"),
            volumeMounts: [{ name: "cache", mountPath: "/cache" }],
          },
        ],
        containers: [
          {
            name: "web",
            image,
            command: sh(
              'echo "listening on :8080"; touch /tmp/up; n=0; while true; do n=$((n+1)); echo "GET /basket/$n 200 in $((n % 17)) ms"; sleep 0.5; done',
            ),
            resources: { requests: { cpu: "50m", memory: "32Mi" }, limits: { cpu: "200m", memory: "64Mi" } },
            readinessProbe: { exec: { command: ["cat", "/tmp/up"] }, periodSeconds: 1 },
            livenessProbe: { exec: { command: ["true"] }, periodSeconds: 2 },
            volumeMounts: [{ name: "cache", mountPath: "/cache" }],
          },
          {
            name: "metrics",
            image,
            command: sh('while true; do echo "pushed 42 series"; sleep 2; done'),
            resources: { requests: { cpu: "10m", memory: "16Mi" } },
          },
        ],
        volumes: [
          { name: "cache", emptyDir: { sizeLimit: "32Mi" } },
          { name: "scratch", emptyDir: { medium: "Memory" } },
        ],
      },
    ],
    [
      "database",
      {
        containers: [
          {
            name: "main",
            image,
            command: sleep,
            resources: { requests: { cpu: "250m", memory: "128Mi" }, limits: { memory: "256Mi" } },
          },
        ],
      },
    ],
    ["queue", { containers: [{ name: "main", image, command: sleep }] }],
    [
      "cache",
      { containers: [{ name: "main", image, command: sleep, resources: { limits: { cpu: "100m", memory: "48Mi" } } }] },
    ],
    [
      "mailer",
      {
        containers: [
          { name: "main", image, command: sleep },
          { name: "sidekick", image, command: sleep },
        ],
      },
    ],
    [
      "import-job",
      { restartPolicy: "Never", containers: [{ name: "main", image, command: sh("echo imported 1200 rows") }] },
    ],
    [
      "search",
      {
        containers: [
          {
            name: "main",
            image,
            command: sh('echo "cannot open the index: permission denied" | tee /dev/termination-log; exit 3'),
          },
        ],
      },
    ],
    ["checkout", { containers: [{ name: "main", image: "registry.invalid/checkout:1.4.2", command: sleep }] }],
    [
      "billing",
      {
        containers: [
          { name: "main", image, command: sleep, volumeMounts: [{ name: "settings", mountPath: "/etc/billing" }] },
        ],
        volumes: [{ name: "settings", configMap: { name: "billing-settings" } }],
      },
    ],
    [
      "worker",
      {
        containers: [
          {
            name: "main",
            image,
            command: sh("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 1000 & wait"),
            resources: { limits: { cpu: "100m" } },
          },
        ],
      },
    ],
  ]);
}
