import { checksPods } from "../../../../test/support/pod-validation.ts";

checksPods("init containers", [
  {
    name: "what only sidecars may have",
    pod: {
      initContainers: [
        { name: "i", image: "i", lifecycle: {}, livenessProbe: {}, readinessProbe: {}, startupProbe: {} },
        {
          name: "c",
          image: "i",
          restartPolicy: "Never",
          resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
        },
        {
          name: "i",
          image: "i",
          ports: [
            { containerPort: 1, hostPort: 5 },
            { containerPort: 2, hostPort: 5 },
          ],
        },
      ],
    },
    wanted: [
      "@[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
      "@[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
      "@[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
      "@[0].startupProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
      '@[1].name: Duplicate value: "c"',
      '@[2].name: Duplicate value: "i"',
      '@[2].ports[1].hostPort: Duplicate value: "TCP//5"',
    ],
    at: "spec.initContainers",
  },
  {
    name: "a sidecar's probes and hooks are checked",
    pod: {
      initContainers: [
        { name: "s", image: "i", restartPolicy: "Always", livenessProbe: { exec: {} }, lifecycle: { preStop: {} } },
        { name: "t", image: "i", restartPolicy: "Always", startupProbe: { tcpSocket: { port: 1 } } },
      ],
    },
    wanted: [
      "@[0].lifecycle.preStop: Required value: must specify a handler type",
      "@[0].livenessProbe.exec.command: Required value",
    ],
    at: "spec.initContainers",
  },
]);

checksPods("ephemeral containers", [
  {
    name: "may not be in a manifest, and are checked all the same",
    pod: {
      volumes: [{ name: "v" }],
      ephemeralContainers: [
        {
          name: "c",
          image: "",
          targetContainerName: "gone",
          ports: [{ containerPort: 1 }],
          resources: { limits: { cpu: "1" } },
          startupProbe: { tcpSocket: { port: 1 } },
          volumeMounts: [
            { name: "v", mountPath: "/v", subPath: "a" },
            { name: "v", mountPath: "/w", subPathExpr: "b" },
          ],
        },
        { name: "e", image: "i", resources: {} },
      ],
    },
    wanted: [
      "spec.ephemeralContainers: Forbidden: cannot be set on create",
      "@.image: Required value",
      '@.name: Duplicate value: "c"',
      '@.targetContainerName: Not found: "gone"',
      "@.ports: Forbidden: cannot be set for an Ephemeral Container",
      "@.resources: Forbidden: cannot be set for an Ephemeral Container",
      "@.startupProbe: Forbidden: cannot be set for an Ephemeral Container",
      "@.volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
      "@.volumeMounts[1].subPathExpr: Forbidden: cannot be set for an Ephemeral Container",
    ],
    at: "spec.ephemeralContainers[0]",
  },
]);
