// What the checks say of pods that are not well.
import { but, pods, testChecks } from "../../../../test/support/doctor-checks.ts";
import { labNow } from "../../../../test/support/doctor-lab.ts";
import type { Pod } from "../../../ground/model/index.ts";

testChecks([
  [
    "a pod that waits",
    "pods.stuck",
    "warn",
    /default\/web for 15 min: ImagePullBackOff: no such image/,
    but("pods", {
      waiting: [
        {
          namespace: "default",
          name: "web",
          waitingFor: { reason: "ImagePullBackOff", message: "no such image", since: labNow - 900_000 },
        },
      ],
    }),
  ],
  [
    "a container that crashes",
    "pods.crash-loops",
    "warn",
    /web main: 9 restarts, last exit code 3/,
    pods({
      status: {
        containerStatuses: [
          {
            name: "main",
            restartCount: 9,
            state: { waiting: { reason: "CrashLoopBackOff" } },
            lastState: { terminated: { exitCode: 3 } },
          },
        ],
      },
    }),
  ],
  [
    "a probe that is dear",
    "pods.probes",
    "warn",
    /500 ms every 10 s, up to 5\.0 %/,
    but("pods", {
      pods: [
        {
          metadata: { namespace: "default", name: "web" },
          spec: { containers: [{ name: "main", livenessProbe: { exec: { command: ["x"] } } }] },
        },
      ] as unknown as Pod[],
      probes: [{ namespace: "default", pod: "web", container: "main", type: "liveness", meanMs: 500 }],
    }),
  ],
  [
    "a limit without a request",
    "pods.limits",
    "warn",
    /web main: memory/,
    pods({ spec: { containers: [{ name: "main", resources: { limits: { memory: "1Gi" } } }] } }),
  ],
  [
    "a pod that overstays",
    "pods.terminating",
    "warn",
    /web since 10 min/,
    pods({
      metadata: { namespace: "default", name: "web", deletionTimestamp: new Date(labNow - 600_000).toISOString() },
    }),
  ],
  [
    "latest",
    "pods.latest",
    "warn",
    /web main: nginx/,
    pods({ spec: { containers: [{ name: "main", image: "nginx", imagePullPolicy: "Always" }] } }),
  ],
  [
    "a tag and a port",
    "pods.latest",
    "pass",
    /no image/,
    pods({ spec: { containers: [{ name: "main", image: "r:5000/nginx:1.27", imagePullPolicy: "Always" }] } }),
  ],
]);
