import { checksPods } from "../../../../test/support/pod-validation.ts";

checksPods("probes and hooks", [
  {
    name: "no handler",
    container: { livenessProbe: {}, lifecycle: { preStop: {} } },
    wanted: [
      "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type",
      "spec.containers[0].livenessProbe: Required value: must specify a handler type",
    ],
  },
  {
    name: "two handlers",
    container: {
      livenessProbe: { tcpSocket: { port: 1 }, exec: { command: ["x"] } },
      lifecycle: { postStart: { exec: { command: ["x"] }, httpGet: { port: 1 }, sleep: { seconds: 1 } } },
    },
    wanted: [
      "@.lifecycle.postStart.httpGet: Forbidden: may not specify more than 1 handler type",
      "@.lifecycle.postStart.sleep: Forbidden: may not specify more than 1 handler type",
      "@.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ],
    at: "spec.containers[0]",
  },
  {
    name: "handlers",
    container: {
      livenessProbe: { exec: {} },
      readinessProbe: { httpGet: { port: "-", scheme: "FTP", httpHeaders: [{ name: "a b", value: "" }] } },
      startupProbe: { grpc: { port: 0 } },
      lifecycle: { postStart: { tcpSocket: { port: 99_999 } } },
    },
    wanted: [
      "@.lifecycle.postStart.tcpSocket.port: Invalid value: 99999: must be between 1 and 65535, inclusive",
      "@.livenessProbe.exec.command: Required value",
      '@.readinessProbe.httpGet.port: Invalid value: "-": must contain at least one letter (a-z)',
      '@.readinessProbe.httpGet.port: Invalid value: "-": must not begin or end with a hyphen',
      '@.readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
      "@.readinessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
      "@.startupProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive",
    ],
    at: "spec.containers[0]",
  },
  {
    name: "probe numbers",
    container: {
      livenessProbe: {
        tcpSocket: { port: 1 },
        initialDelaySeconds: -1,
        timeoutSeconds: -2,
        periodSeconds: -3,
        successThreshold: 2,
        failureThreshold: -4,
        terminationGracePeriodSeconds: 0,
      },
      readinessProbe: { tcpSocket: { port: 1 }, successThreshold: 2, terminationGracePeriodSeconds: 1 },
      startupProbe: { tcpSocket: { port: 1 }, successThreshold: 3, terminationGracePeriodSeconds: 1 },
    },
    wanted: [
      "@.livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0",
      "@.livenessProbe.timeoutSeconds: Invalid value: -2: must be greater than or equal to 0",
      "@.livenessProbe.periodSeconds: Invalid value: -3: must be greater than or equal to 0",
      "@.livenessProbe.failureThreshold: Invalid value: -4: must be greater than or equal to 0",
      "@.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
      "@.livenessProbe.successThreshold: Invalid value: 2: must be 1",
      "@.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
      "@.startupProbe.successThreshold: Invalid value: 3: must be 1",
    ],
    at: "spec.containers[0]",
  },
  {
    name: "sleep",
    container: { lifecycle: { postStart: { sleep: { seconds: 0 } }, preStop: { sleep: { seconds: 31 } } } },
    wanted: [
      "@.postStart.sleep: Invalid value: 0: must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.",
      "@.preStop.sleep: Invalid value: 31: must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.",
    ],
    at: "spec.containers[0].lifecycle",
  },
  {
    name: "stop signal without an operating system",
    container: { lifecycle: { stopSignal: "SIGTERM" } },
    wanted: [
      "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`",
    ],
  },
  {
    name: "stop signal",
    pod: { os: { name: "linux" } },
    container: { lifecycle: { stopSignal: "SIGRTMIN+3" } },
    wanted: [],
  },
  {
    name: "unknown stop signal",
    pod: { os: { name: "linux" } },
    container: { lifecycle: { stopSignal: "TERM" } },
    wanted: [
      /^spec.containers\[0\].lifecycle.stopSignal: Unsupported value: "TERM": supported values: "SIGABRT", .*"SIGXFSZ"$/,
    ],
  },
]);
