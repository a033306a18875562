// Manifests that are wrong in one place each.
/** A manifest with something of everything, as an object to spoil. */
export function richManifest(name: string): Record<string, unknown> {
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
  ["spec.containers.0.resources.requests.cpu", "2", "spec.containers[0].resources.requests"],
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

export interface SpoiltManifest {
  readonly name: string;
  readonly text: string;
  /** What the complaint about it must name. */
  readonly field: string;
}

export function spoiltManifests(count: number): readonly SpoiltManifest[] {
  return Array.from({ length: count }, (_, index) => {
    const [path, value, field = path] = spoilers[index % spoilers.length] ?? ["kind", "x"];
    const name = `spoilt-${index}`;
    const pod = richManifest(name);
    put(pod, path, value);
    return { name, text: JSON.stringify(pod, undefined, index % 3), field };
  });
}
